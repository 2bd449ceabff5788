package specgen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// absent represents a field that does not exist, which is not the same as null.
type absent struct{}

// position is where a field is: its path in the schema, such as "spec.nodePools[].size", and its place in one spec,
// such as "spec.nodePools[1].size".
type position struct{ Path, Place string }

func (p position) field(name string) position {
	return position{p.Path + "." + name, p.Place + "." + name}
}

func (p position) item(i int) position {
	return position{p.Path + "[]", fmt.Sprintf("%s[%d]", p.Place, i)}
}

func (p position) key(key string) position {
	return position{p.Path + ".*", p.Place + "." + key}
}

// Choice contains a field's current value, and the values to which the field can be changed.
type Choice struct {
	position
	// current is the field's current value, which can always be kept.
	current any
	Options []option
}

// option is another value that a field can have.
type option struct {
	group group
	value any
}

// copy returns a copy of the value, so that later changes to the spec don't change the option.
func (o option) copy() any {
	if o.group == removed {
		return o.value
	}
	return runtime.DeepCopyJSONValue(o.value)
}

// group says how an option differs from the current value.
type group string

const (
	another group = "another value"
	longer  group = "one more"
	shorter group = "one less"
	added   group = "added"
	null    group = "null"
	removed group = "removed"
)

// walk traverses a spec, guided by its schema, and lets a function choose each field's value.
type walk struct {
	*Specs
	// pick returns 0 to leave a field unchanged, and i for its option i-1.
	pick func(Choice) int
	// unknown lists the paths of the fields for which no value other than the current one is known.
	unknown []string
}

// Build derives one spec from another, with the choices made by a function. It also returns the paths of the fields for
// which no value other than the current one is known.
func (s *Specs) Build(from map[string]any, pick func(Choice) int) (spec map[string]any, unknown []string) {
	walk := &walk{Specs: s, pick: pick}
	made, _ := walk.node(position{"spec", "spec"}, s.schema, runtime.DeepCopyJSON(from), true).(map[string]any)
	slices.Sort(walk.unknown)
	return made, slices.Compact(walk.unknown)
}

// node decides what happens to one field and to everything below it.
func (w *walk) node(at position, schema *apiextensionsv1.JSONSchemaProps, current any, required bool) any {
	if _, fixed := w.fixed[at.Path]; fixed || slices.Contains(w.Immutable, at.Path) {
		return current
	}
	chosen := current
	if options := w.options(at, schema, current, required); len(options) > 0 {
		if i := w.pick(Choice{position: at, current: current, Options: options}); i > 0 {
			chosen = options[i-1].copy()
		}
	}
	if _, whole := w.Values[at.Path]; whole {
		return chosen
	}
	switch value := chosen.(type) {
	case map[string]any:
		return w.object(at, schema, value)
	case []any:
		return w.items(at, schema, value)
	}
	return chosen
}

func (w *walk) object(at position, schema *apiextensionsv1.JSONSchemaProps, value map[string]any) map[string]any {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		current, found := value[name]
		if !found {
			current = absent{}
		}
		made := w.node(at.field(name), &property, current, slices.Contains(schema.Required, name))
		if _, gone := made.(absent); gone {
			delete(value, name)
			continue
		}
		value[name] = made
	}
	if additional := valueSchema(schema); additional != nil {
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if _, declared := schema.Properties[key]; !declared {
				value[key] = w.node(at.key(key), additional, value[key], true)
			}
		}
	}
	return value
}

func (w *walk) items(at position, schema *apiextensionsv1.JSONSchemaProps, value []any) []any {
	if items := itemSchema(schema); items != nil {
		for i := range value {
			value[i] = w.node(at.item(i), items, value[i], true)
		}
	}
	return value
}

// options returns the other values to try for a field: those that are declared or follow from the schema, and
// then, where they are allowed, null and no value at all.
func (w *walk) options(at position, schema *apiextensionsv1.JSONSchemaProps, current any, required bool) []option {
	var all []option
	if values, declared := w.Values[at.Path]; declared {
		all = optionsOf(another, values...)
	} else {
		all = w.others(at, schema, current)
	}
	if _, always := w.required[at.Path]; always {
		required = true
	} else if schema.Nullable && present(current) {
		all = append(all, option{null, nil})
	}
	// A field with a default never stays absent.
	if !required && schema.Default == nil && present(current) {
		all = append(all, option{removed, absent{}})
	}
	return slices.DeleteFunc(all, func(option option) bool {
		// An added object may be empty at first: its fields are added next.
		return option.group != added && Same(option.value, current)
	})
}

// others returns the values that follow from the schema.
func (w *walk) others(at position, schema *apiextensionsv1.JSONSchemaProps, current any) []option {
	switch {
	case len(schema.Enum) == 0 && schema.Type == "array":
		list, _ := current.([]any)
		return w.otherLists(at, schema, list)
	case valueSchema(schema) != nil && len(schema.Properties) == 0:
		entries, _ := current.(map[string]any)
		return w.otherMaps(at, schema, entries)
	case len(schema.Properties) > 0:
		if present(current) {
			return nil // only its fields can change
		}
		return w.added(at, schema)
	}
	values := scalars(schema, current)
	if len(values) == 0 {
		w.unknown = append(w.unknown, at.Path)
	}
	return optionsOf(another, values...)
}

func (w *walk) added(at position, schema *apiextensionsv1.JSONSchemaProps) []option {
	value, known := w.example(at, schema)
	if !known {
		return nil
	}
	return []option{{added, value}}
}

func (w *walk) otherLists(at position, schema *apiextensionsv1.JSONSchemaProps, list []any) []option {
	var options []option
	if schema.MaxItems == nil || int64(len(list)) < *schema.MaxItems {
		if item, known := w.newItem(at, schema, list); known {
			options = append(options, option{longer, append(slices.Clone(list), item)})
		}
	}
	if least := atLeast(schema.MinItems); len(list) > max(least, 1) {
		options = append(options, option{shorter, slices.Clone(list[:len(list)-1])})
	} else if len(list) == 1 && least == 0 {
		options = append(options, option{shorter, []any{}})
	}
	return options
}

func (w *walk) otherMaps(at position, schema *apiextensionsv1.JSONSchemaProps, entries map[string]any) []option {
	keys := slices.Sorted(maps.Keys(entries))
	var options []option
	if schema.MaxProperties == nil || int64(len(keys)) < *schema.MaxProperties {
		if value, known := w.example(at.key("*"), valueSchema(schema)); known {
			grown := map[string]any{}
			maps.Copy(grown, entries)
			grown[newKey(entries)] = value
			options = append(options, option{longer, grown})
		}
	}
	if len(keys) > atLeast(schema.MinProperties) {
		shrunk := maps.Clone(entries)
		delete(shrunk, keys[len(keys)-1])
		options = append(options, option{shorter, shrunk})
	}
	return options
}

// newKey returns a key that a map does not have.
func newKey(entries map[string]any) string {
	key := "added"
	for {
		if _, taken := entries[key]; !taken {
			return key
		}
		key += "-too"
	}
}

func optionsOf(group group, values ...any) []option {
	var options []option
	for _, value := range values {
		options = append(options, option{group, value})
	}
	return options
}

// present reports whether a field has a value other than null.
func present(value any) bool {
	_, missing := value.(absent)
	return !missing && value != nil
}

// Same compares JSON values; it treats an empty list or map as absent.
func Same(one, other any) bool {
	return empty(one) && empty(other) || equality.Semantic.DeepEqual(one, other)
}

func empty(value any) bool {
	switch value := value.(type) {
	case absent:
		return true
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}

func atLeast(bound *int64) int {
	if bound == nil {
		return 0
	}
	return int(*bound)
}

func itemSchema(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if schema.Items == nil {
		return nil
	}
	return schema.Items.Schema
}

// valueSchema returns the schema of a map's values, or nil for an object that is not a map, or whose values may be
// anything.
func valueSchema(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if schema.AdditionalProperties == nil {
		return nil
	}
	return schema.AdditionalProperties.Schema
}

// below reports whether a place is inside another one.
func below(place, outer string) bool {
	return strings.HasPrefix(place, outer+".") || strings.HasPrefix(place, outer+"[")
}

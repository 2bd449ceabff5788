package specgen

import (
	"math"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// near is the maximum number of steps between the current value and a bound that is tried: an object with a million
	// pods would show nothing more.
	near = 100
	// longString is the highest maximum length of a string that is tried: many names in Kubernetes may be that long.
	longString = 63
)

// formatted holds two valid strings for each of these formats.
var formatted = map[string][]any{
	"date":      {"2030-01-01", "2031-12-31"},
	"date-time": {"2030-01-01T00:00:00Z", "2031-12-31T23:59:59Z"},
	"datetime":  {"2030-01-01T00:00:00Z", "2031-12-31T23:59:59Z"},
	"duration":  {"1s", "2m"},
	"ipv4":      {"192.0.2.1", "192.0.2.2"},
	"ipv6":      {"2001:db8::1", "2001:db8::2"},
	"cidr":      {"192.0.2.0/24", "198.51.100.0/24"},
	"uri":       {"https://one.example.com/", "https://two.example.com/"},
	"email":     {"one@example.com", "two@example.com"},
	"hostname":  {"one.example.com", "two.example.com"},
	"uuid":      {"11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"},
	"byte":      {"b25l", "dHdv"},
	"password":  {"one", "two"},
}

// scalars returns values for a field without inner fields. It returns none if the schema doesn't say enough: for a
// string with a pattern, or a free-form object, unless the field has an enum or a default.
func scalars(schema *apiextensionsv1.JSONSchemaProps, current any) []any {
	var values []any
	switch {
	case len(schema.Enum) > 0:
		for _, allowed := range schema.Enum {
			values = append(values, decoded(allowed)...)
		}
	case schema.Type == "boolean":
		values = []any{true, false}
	case schema.Type == "integer" || schema.Type == "number" || schema.XIntOrString:
		values = numbers(schema, current)
	case schema.Type == "string":
		values = texts(schema)
	}
	if schema.Default != nil {
		values = append(values, decoded(*schema.Default)...)
	}
	return distinct(values)
}

func decoded(content apiextensionsv1.JSON) []any {
	var value any
	if err := utiljson.Unmarshal(content.Raw, &value); err != nil {
		return nil // the API server accepts no such definition
	}
	return []any{value}
}

// distinct removes duplicates: it keeps the first of each set of equal values.
func distinct(values []any) []any {
	var result []any
	for _, value := range values {
		if !slices.ContainsFunc(result, func(other any) bool { return Same(other, value) }) {
			result = append(result, value)
		}
	}
	return result
}

// numbers returns the bounds that are near, and the neighbours of the current value. If the current value is
// not a number, the allowed number nearest to zero takes its place.
func numbers(schema *apiextensionsv1.JSONSchemaProps, current any) []any {
	step := 1.0
	if schema.MultipleOf != nil {
		step = *schema.MultipleOf
	}
	low, high := math.Inf(-1), math.Inf(1)
	if schema.Minimum != nil {
		low = math.Ceil(*schema.Minimum/step) * step
		if schema.ExclusiveMinimum && low == *schema.Minimum {
			low += step
		}
	}
	if schema.Maximum != nil {
		high = math.Floor(*schema.Maximum/step) * step
		if schema.ExclusiveMaximum && high == *schema.Maximum {
			high -= step
		}
	}
	now, known := number(current)
	if !known {
		now = min(max(0, low), high)
	}
	var values []any
	for _, candidate := range []float64{low, high, now + step, now + 2*step, now - step} {
		isLow := candidate == now-step && math.IsInf(low, -1) && candidate < 0 // no negative numbers, unless the schema mentions them
		if candidate < low || candidate > high || math.Abs(candidate-now) > near*step || isLow {
			continue
		}
		values = append(values, asNumber(candidate))
	}
	return values
}

func number(value any) (float64, bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case float64:
		return value, true
	}
	return 0, false
}

// asNumber returns an int64 if possible, as apimachinery does when it decodes JSON.
func asNumber(value float64) any {
	if value == math.Trunc(value) {
		return int64(value)
	}
	return value
}

// texts returns no strings if the schema has a pattern, and strings of its format if that is in formatted. Otherwise it
// returns the shortest string that isn't empty, one of the maximum length unless that is long, and a different one that
// is a character longer than the first if the maximum allows it. If only the empty string is allowed, texts returns
// that.
func texts(schema *apiextensionsv1.JSONSchemaProps) []any {
	if schema.Pattern != "" {
		return nil
	}
	if values, known := formatted[schema.Format]; known {
		return values
	}
	least, most := max(atLeast(schema.MinLength), 1), math.MaxInt
	if schema.MaxLength != nil {
		most = int(*schema.MaxLength)
	}
	if least > most {
		return []any{""}
	}
	values := []any{strings.Repeat("a", least)}
	if most <= longString {
		values = append(values, strings.Repeat("z", most))
	}
	return append(values, strings.Repeat("b", min(least+1, most)))
}

// example returns a plain value for an absent field: its first known value, or a list or an object with only what the
// schema requires. If there is no such value, known is false.
func (w *walk) example(at position, schema *apiextensionsv1.JSONSchemaProps) (value any, known bool) {
	if values := w.Values[at.Path]; len(values) > 0 {
		return values[0], true
	}
	if schema.Default != nil {
		return decoded(*schema.Default)[0], true
	}
	switch {
	case len(schema.Enum) > 0:
		return decoded(schema.Enum[0])[0], true
	case schema.Type == "array":
		return w.exampleList(at, schema)
	case schema.Type == "object":
		return w.exampleObject(at, schema)
	}
	values := scalars(schema, absent{})
	if len(values) == 0 {
		w.unknown = append(w.unknown, at.Path)
		return nil, false
	}
	return values[0], true
}

func (w *walk) exampleList(at position, schema *apiextensionsv1.JSONSchemaProps) (any, bool) {
	list := []any{}
	for range atLeast(schema.MinItems) {
		item, known := w.newItem(at, schema, list)
		if !known {
			return nil, false
		}
		list = append(list, item)
	}
	return list, true
}

func (w *walk) exampleObject(at position, schema *apiextensionsv1.JSONSchemaProps) (any, bool) {
	object := map[string]any{}
	for _, name := range slices.Sorted(slices.Values(schema.Required)) {
		property := schema.Properties[name]
		value, known := w.example(at.field(name), &property)
		if !known {
			return nil, false
		}
		object[name] = value
	}
	values := valueSchema(schema)
	for values != nil && len(object) < atLeast(schema.MinProperties) {
		value, known := w.example(at.key("*"), values)
		if !known {
			return nil, false
		}
		object[newKey(object)] = value
	}
	if values == nil && schema.XPreserveUnknownFields != nil && len(schema.Properties) == 0 {
		w.unknown = append(w.unknown, at.Path)
		return nil, false
	}
	return object, true
}

// newItem returns one more item for a list. An object is like the last item, or an example if there is none, except
// that the first of the list's map keys, if it has any, gets a value that is not in use yet. If the schema declares no
// fields for the items, the new one is a value that the list doesn't contain.
func (w *walk) newItem(at position, schema *apiextensionsv1.JSONSchemaProps, list []any) (any, bool) {
	items, inner := itemSchema(schema), at.item(len(list))
	if items == nil {
		return nil, false
	}
	if len(items.Properties) == 0 {
		return w.unused(inner, items, list)
	}
	var item any
	if len(list) > 0 {
		item = runtime.DeepCopyJSONValue(list[len(list)-1])
	} else if made, known := w.example(inner, items); known {
		item = runtime.DeepCopyJSONValue(made)
	}
	fields, ok := item.(map[string]any)
	if !ok {
		return nil, false
	}
	if len(list) == 0 || len(schema.XListMapKeys) == 0 {
		return fields, true
	}
	name := schema.XListMapKeys[0]
	var taken []any
	for _, other := range list {
		if others, ok := other.(map[string]any); ok {
			taken = append(taken, others[name])
		}
	}
	key := items.Properties[name]
	value, known := w.unused(inner.field(name), &key, taken)
	fields[name] = value
	return fields, known
}

// unused returns a value that is not in taken, if one is known. It adds a field without any candidate to unknown.
func (w *walk) unused(at position, schema *apiextensionsv1.JSONSchemaProps, taken []any) (any, bool) {
	candidates, declared := w.Values[at.Path]
	if !declared && len(taken) > 0 {
		candidates = scalars(schema, taken[len(taken)-1])
	} else if !declared {
		candidates = scalars(schema, absent{})
	}
	if !declared && schema.Type == "string" && schema.Pattern == "" && schema.Format == "" && len(schema.Enum) == 0 {
		candidates = append(candidates, texts(schema)[0].(string)+strconv.Itoa(len(taken)))
	}
	for _, candidate := range candidates {
		if !slices.ContainsFunc(taken, func(other any) bool { return Same(other, candidate) }) {
			return candidate, true
		}
	}
	if len(candidates) == 0 {
		w.unknown = append(w.unknown, at.Path)
	}
	return nil, false
}

package specgen

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/operator-workshop/operatortest/testcluster"
)

// NoNode is a label that no node has.
const NoNode = "operatortest.example.com/no-such-node"

// impossible contains values that no simulated cluster can satisfy, keyed by the names of the fields. Fields with these
// names mean the same in nearly all definitions. Each value is tried only where the schema has a field of that name and
// type, which may be inside the schema of a container or a whole pod: some definitions embed these.
var impossible = map[string]any{
	"image":        testcluster.UnpullableImage,
	"nodeSelector": map[string]any{NoNode: "true"},
	"resources":    map[string]any{"requests": map[string]any{"cpu": "1000000"}},
}

// Impossible returns copies of the sample's spec that ask for pods that can't run. There is at most one for each name
// in impossible; it changes the first field of that name that can be changed and has a suitable type.
func (s *Specs) Impossible() []Candidate {
	found := map[string]Candidate{}
	s.impossibleIn(position{"spec", "spec"}, s.schema, s.Base, func(name string, at position, value any) {
		if _, known := found[name]; !known {
			found[name] = Candidate{What: fmt.Sprintf("%s is %s", at.Place, OneLine(impossible[name])), To: value.(map[string]any)}
		}
	})
	var candidates []Candidate
	for _, name := range slices.Sorted(maps.Keys(found)) {
		candidates = append(candidates, found[name])
	}
	return candidates
}

// impossibleIn calls emit once for each field that can be made impossible below a value, with a copy of the value in
// which only that field is impossible.
func (s *Specs) impossibleIn(at position, schema *apiextensionsv1.JSONSchemaProps, value any, emit func(name string, at position, value any)) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			property, inner := schema.Properties[name], at.field(name)
			if _, fixed := s.fixed[inner.Path]; fixed || slices.Contains(s.Immutable, inner.Path) {
				continue
			}
			with := func(part any) any {
				changed := runtime.DeepCopyJSON(value)
				changed[name] = runtime.DeepCopyJSONValue(part)
				return changed
			}
			if wanted, named := impossible[name]; named && fits(&property, wanted) {
				emit(name, inner, with(wanted))
				continue
			}
			s.impossibleIn(inner, &property, value[name], func(name string, at position, part any) { emit(name, at, with(part)) })
		}
	case []any:
		items := itemSchema(schema)
		for i := 0; items != nil && i < len(value); i++ {
			s.impossibleIn(at.item(i), items, value[i], func(name string, at position, part any) {
				changed := slices.Clone(value)
				changed[i] = part
				emit(name, at, changed)
			})
		}
	}
}

// fits reports whether a field can have a value, as far as one can tell from the types. The API server has the last
// word.
func fits(schema *apiextensionsv1.JSONSchemaProps, value any) bool {
	fields, isObject := value.(map[string]any)
	if !isObject {
		return schema.Type == "string" || schema.XIntOrString
	}
	for name, part := range fields {
		inner := valueSchema(schema)
		if property, declared := schema.Properties[name]; declared {
			inner = &property
		}
		if inner == nil || !fits(inner, part) {
			return false
		}
	}
	return true
}

// Package specgen generates specs of a custom resource from the schema in its definition: its bounds, enums, defaults,
// optional fields and lists. It needs no cluster.
package specgen

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"example.com/operator-workshop/operatortest"
)

// Specs generates specs of a kind from the schema in its definition. The API server may still refuse one, for example
// because of a CEL rule, which Specs doesn't evaluate.
type Specs struct {
	schema *apiextensionsv1.JSONSchemaProps
	// Base is the sample's spec as the API server stores it, with defaults.
	Base map[string]any
	// Values, Immutable, fixed and required are those of the Operator.
	Values    map[string][]any
	Immutable []string
	fixed     map[string]string
	required  map[string]string
}

// New reads the schema of spec from a version of a definition, and adds what the operator declares: Values, Immutable,
// Fixed and Required. The caller sets Base.
func New(definition *apiextensionsv1.CustomResourceDefinition, version string, operator operatortest.Operator) (*Specs, error) {
	schema, err := specSchema(definition, version)
	if err != nil {
		return nil, err
	}
	made := &Specs{schema: schema, Values: map[string][]any{}, Immutable: operator.Immutable, fixed: operator.Fixed, required: operator.Required}
	for path, values := range operator.Values {
		if !declares(schema, path) {
			return nil, fmt.Errorf("operator.Values names %s, which %s does not have", path, definition.Name)
		}
		if made.Values[path], err = asJSON(values); err != nil {
			return nil, fmt.Errorf("operator.Values of %s: %w", path, err)
		}
	}
	for path, reason := range operator.Fixed {
		if !declares(schema, path) || reason == "" {
			return nil, fmt.Errorf("operator.Fixed has %s=%q: name a field of %s, and the reason why it keeps its value", path, reason, definition.Name)
		}
	}
	for path, reason := range operator.Required {
		if !declares(schema, path) || reason == "" {
			return nil, fmt.Errorf("operator.Required has %s=%q: name a field of %s, and the reason why it always has a value", path, reason, definition.Name)
		}
	}
	return made, nil
}

// CheckRequired returns an error if the sample has no value for a field that must always have one. It doesn't look inside
// lists and maps.
func (s *Specs) CheckRequired() error {
	for _, path := range slices.Sorted(maps.Keys(s.required)) {
		if strings.ContainsAny(path, "[*") {
			continue
		}
		if _, found, err := unstructured.NestedFieldNoCopy(s.Base, fieldsOf(path)...); !found || err != nil {
			return fmt.Errorf("operator.Required names %s, which the sample lacks: give it a value there", path)
		}
	}
	return nil
}

func specSchema(definition *apiextensionsv1.CustomResourceDefinition, wanted string) (*apiextensionsv1.JSONSchemaProps, error) {
	for _, version := range definition.Spec.Versions {
		if version.Name != wanted || version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			continue
		}
		if spec, found := version.Schema.OpenAPIV3Schema.Properties["spec"]; found {
			return &spec, nil
		}
	}
	return nil, fmt.Errorf("the definition %s has no spec in version %s: there is nothing to change", definition.Name, wanted)
}

// declares reports whether the schema of spec has a field with that path, or allows fields of any name there.
func declares(schema *apiextensionsv1.JSONSchemaProps, path string) bool {
	rest, found := strings.CutPrefix(path, "spec")
	for found && rest != "" {
		if schema.XPreserveUnknownFields != nil && len(schema.Properties) == 0 {
			return true
		}
		schema, rest = enter(schema, rest)
		found = schema != nil
	}
	return found
}

// enter returns the schema one step down a path, and the rest of the path. The schema is nil if there is no such field.
func enter(schema *apiextensionsv1.JSONSchemaProps, path string) (inner *apiextensionsv1.JSONSchemaProps, rest string) {
	if rest, items := strings.CutPrefix(path, "[]"); items {
		return itemSchema(schema), rest
	}
	if rest, values := strings.CutPrefix(path, ".*"); values {
		return valueSchema(schema), rest
	}
	name := strings.TrimPrefix(path, ".")
	if end := strings.IndexAny(name, ".["); end >= 0 {
		name = name[:end]
	}
	property, declared := schema.Properties[name]
	if !declared {
		return nil, ""
	}
	return &property, strings.TrimPrefix(strings.TrimPrefix(path, "."), name)
}

// asJSON converts values to the types in unstructured objects.
func asJSON(values []any) ([]any, error) {
	content, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	var result []any
	return result, utiljson.Unmarshal(content, &result)
}

// OneLine formats a value for display, as JSON.
func OneLine(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(content)
}

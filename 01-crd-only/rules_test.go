package crdonly

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mustRead reads the stage's definition. It ends the test if that fails, or if the API server would refuse it.
func mustRead(t *testing.T) offline {
	t.Helper()
	api, err := readOffline(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// mustDecode returns the stage's definition without compiling its schemas.
func mustDecode(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	content, err := os.ReadFile(definitionFile)
	if err != nil {
		t.Fatal(err)
	}
	definition, err := decodeDefinition(content)
	if err != nil {
		t.Fatal(err)
	}
	return definition
}

func TestDefinition(t *testing.T) {
	g := NewWithT(t)
	mustRead(t)
	spec := mustDecode(t).Spec
	g.Expect(spec.Group).To(Equal("flights.com"), "spec.group")
	g.Expect(spec.Scope).To(Equal(apiextensionsv1.NamespaceScoped), "spec.scope")
	g.Expect(spec.Names.Kind).To(Equal("FlightTicket"), "spec.names.kind")
	g.Expect(spec.Names.Plural).To(Equal("flighttickets"), "spec.names.plural")
	g.Expect(spec.Names.ShortNames).To(ConsistOf("ft"), "spec.names.shortNames")
	g.Expect(spec.Names.Categories).To(ConsistOf("travel"), "spec.names.categories")
	for _, version := range spec.Versions {
		g.Expect(version.Served).To(BeTrue(), "%s must be served", version.Name)
		g.Expect(version.Storage).To(Equal(version.Name == "v1"), "v1 must be the only version with storage: true, see storage of %s", version.Name)
	}
}

func TestSamples(t *testing.T) {
	for folder, verb := range map[string]string{operator.Samples: "accepts ", operator.InvalidSamples: "refuses "} {
		files, err := filepath.Glob(folder + "/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s holds no sample (error: %v)", folder, err)
		}
		for _, file := range files {
			t.Run(verb+filepath.Base(file), func(t *testing.T) {
				api := mustRead(t)
				if folder == operator.InvalidSamples {
					if err := api.tryInvalid(t.Context(), file); err != nil {
						t.Error(err)
					}
					return
				}
				objects, _, err := readObjects(file)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := api.write(t.Context(), objects[0], nil); err != nil {
					t.Errorf("%s must be accepted, but is refused: %v", file, err)
				}
			})
		}
	}
}

func TestNumberOfSeats(t *testing.T) {
	for number, refused := range map[int64]string{
		0:  "spec.number in body should be greater than or equal to 1",
		1:  "",
		10: "",
		11: "spec.number in body should be less than or equal to 10",
	} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			_, err := mustRead(t).write(t.Context(), ticketWith(map[string]any{"number": number}), nil)
			expectRefusal(t, err, refused)
		})
	}
}

func TestDefaults(t *testing.T) {
	for name, test := range map[string]struct{ written, stored map[string]any }{
		"optional fields that are left out": {
			stored: map[string]any{"class": "economy", "booked": false},
		},
		"null in a field that is nullable, and in one that isn't": {
			written: map[string]any{"class": nil, "returnDate": nil},
			stored:  map[string]any{"class": "economy", "booked": false, "returnDate": nil},
		},
		"what the traveller chose": {
			written: map[string]any{"class": "first", "booked": true, "returnDate": "2028-02-29"},
			stored:  map[string]any{"class": "first", "booked": true, "returnDate": "2028-02-29"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored, err := mustRead(t).write(t.Context(), ticketWith(test.written), nil)
			if err != nil {
				t.Fatal(err)
			}
			wanted := ticketWith(test.stored)
			NewWithT(t).Expect(stored.Object["spec"]).To(Equal(wanted.Object["spec"]))
		})
	}
}

func TestBooking(t *testing.T) {
	for name, test := range map[string]struct {
		before, after map[string]any
		refused       string
	}{
		"the route may change until the ticket is booked":         {after: map[string]any{"to": "OSL"}},
		"the route may change in the write that books the ticket": {after: map[string]any{"to": "OSL", "booked": true}},
		"other fields of a booked ticket may change": {
			before: map[string]any{"booked": true}, after: map[string]any{"booked": true, "number": int64(5)},
		},
		"a booked ticket keeps its departure": {
			before: map[string]any{"booked": true}, after: map[string]any{"booked": true, "from": "OSL"},
			refused: "the route of a booked ticket is fixed",
		},
		"a booked ticket keeps its destination": {
			before: map[string]any{"booked": true}, after: map[string]any{"booked": true, "to": "OSL"},
			refused: "the route of a booked ticket is fixed",
		},
		"a booking can't be undone": {
			before: map[string]any{"booked": true}, after: map[string]any{"booked": false},
			refused: "a booking can't be undone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := mustRead(t)
			old, err := api.write(t.Context(), ticketWith(test.before), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = api.write(t.Context(), ticketWith(test.after), old)
			expectRefusal(t, err, test.refused)
		})
	}
}

// TestEveryRuleHasASample removes the rules of v1 one at a time. Each time, at least one invalid sample must be
// accepted, or refused with an error that lacks the message in the sample's first line.
func TestEveryRuleHasASample(t *testing.T) {
	api := mustRead(t)
	files, err := filepath.Glob(operator.InvalidSamples + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// Ignore samples that fail TestSamples even with all rules in place.
	files = slices.DeleteFunc(files, func(file string) bool { return api.tryInvalid(t.Context(), file) != nil })
	definition := mustDecode(t)
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	forEachRule(spec, "", func(name, rule string) {
		t.Run(name, func(t *testing.T) {
			api, err := compile(definition)
			if err != nil {
				t.Fatalf("without %s: %v", rule, err)
			}
			shown := slices.ContainsFunc(files, func(file string) bool {
				objects, _, err := readObjects(file)
				return err == nil && objects[len(objects)-1].GroupVersionKind().Version == "v1" && api.tryInvalid(t.Context(), file) != nil
			})
			if !shown {
				t.Errorf("no sample in %s shows the rule %s: without it, all of them would be refused just the same", operator.InvalidSamples, rule)
			}
		})
	})
}

// forEachRule removes the rules of a schema, one at a time, and calls try with a name and the text of the missing rule.
// It handles the validation keywords that the definition uses, except types and the formats of numbers. It skips the
// status, which a sample can't set.
func forEachRule(schema *apiextensionsv1.JSONSchemaProps, path string, try func(name, rule string)) {
	without := func(word, value string, takeOut func(*apiextensionsv1.JSONSchemaProps)) {
		whole := *schema
		takeOut(schema)
		name := strings.TrimPrefix(path+"."+word, ".")
		try(name, fmt.Sprintf("%s: %s", name, value))
		*schema = whole
	}
	for i, name := range schema.Required {
		without("required", name, func(s *apiextensionsv1.JSONSchemaProps) { s.Required = slices.Delete(slices.Clone(s.Required), i, i+1) })
	}
	for i, rule := range schema.XValidations {
		without("x-kubernetes-validations", rule.Rule, func(s *apiextensionsv1.JSONSchemaProps) {
			s.XValidations = slices.Delete(slices.Clone(s.XValidations), i, i+1)
		})
	}
	if limit := schema.Minimum; limit != nil {
		without("minimum", fmt.Sprint(*limit), func(s *apiextensionsv1.JSONSchemaProps) { s.Minimum = nil })
	}
	if limit := schema.Maximum; limit != nil {
		without("maximum", fmt.Sprint(*limit), func(s *apiextensionsv1.JSONSchemaProps) { s.Maximum = nil })
	}
	if limit := schema.MaxLength; limit != nil {
		without("maxLength", fmt.Sprint(*limit), func(s *apiextensionsv1.JSONSchemaProps) { s.MaxLength = nil })
	}
	if limit := schema.MaxItems; limit != nil {
		without("maxItems", fmt.Sprint(*limit), func(s *apiextensionsv1.JSONSchemaProps) { s.MaxItems = nil })
	}
	if limit := schema.MaxProperties; limit != nil {
		without("maxProperties", fmt.Sprint(*limit), func(s *apiextensionsv1.JSONSchemaProps) { s.MaxProperties = nil })
	}
	if kind := schema.XListType; kind != nil {
		without("x-kubernetes-list-type", *kind, func(s *apiextensionsv1.JSONSchemaProps) { s.XListType, s.XListMapKeys = nil, nil })
	}
	if schema.Pattern != "" {
		without("pattern", schema.Pattern, func(s *apiextensionsv1.JSONSchemaProps) { s.Pattern = "" })
	}
	if schema.Enum != nil {
		without("enum", "its values", func(s *apiextensionsv1.JSONSchemaProps) { s.Enum = nil })
	}
	if schema.Format != "" && schema.Type == "string" {
		without("format", schema.Format, func(s *apiextensionsv1.JSONSchemaProps) { s.Format = "" })
	}
	if items := schema.Items; items != nil {
		forEachRule(items.Schema, path+".items", try)
	}
	if values := schema.AdditionalProperties; values != nil {
		forEachRule(values.Schema, path+".additionalProperties", try)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if path+name == "status" {
			continue
		}
		property := schema.Properties[name]
		below := property
		forEachRule(&below, strings.TrimPrefix(path+"."+name, "."), func(place, rule string) {
			schema.Properties[name] = below
			try(place, rule)
			schema.Properties[name] = property
		})
	}
}

// TestNumbersHaveAFormat checks the formats themselves, because no number is refused because of its format alone.
// A whole number that an int32 can't hold also breaks the limits of spec.number or, in the status, a limit of the
// scale subresource.
func TestNumbersHaveAFormat(t *testing.T) {
	g := NewWithT(t)
	mustRead(t)
	for _, version := range mustDecode(t).Spec.Versions {
		ticket := version.Schema.OpenAPIV3Schema.Properties
		g.Expect(ticket["spec"].Properties["number"].Format).To(Equal("int32"),
			"spec.number must have the format int32 in %s", version.Name)
		//workshop:step 1.11
		g.Expect(ticket["status"].Properties["confirmedSeats"].Format).To(Equal("int32"),
			"status.confirmedSeats must have the format int32 in %s", version.Name)
	}
}

func TestEveryFieldIsDescribed(t *testing.T) {
	mustRead(t)
	for _, version := range mustDecode(t).Spec.Versions {
		expectDescribed(t, *version.Schema.OpenAPIV3Schema, "the openAPIV3Schema of "+version.Name)
	}
}

// expectDescribed expects that the schema, and every property in it, has a description that ends in a full stop.
func expectDescribed(t *testing.T, schema apiextensionsv1.JSONSchemaProps, path string) {
	if !strings.HasSuffix(schema.Description, ".") {
		t.Errorf("%s needs a description that ends in a full stop, but has %q", path, schema.Description)
	}
	for name, property := range schema.Properties {
		expectDescribed(t, property, path+"."+name)
	}
	if schema.Items != nil {
		expectDescribed(t, *schema.Items.Schema, path+".items")
	}
}

// ticketWith returns a ticket whose spec is valid, unless one of the given fields is not.
func ticketWith(fields map[string]any) *unstructured.Unstructured {
	spec := map[string]any{"from": "ZRH", "to": "FCO", "number": int64(2)}
	maps.Copy(spec, fields)
	return ticketOf("default", "ticket", "flights.com/v1", spec)
}

// expectRefusal expects an error with the message, or no error if the message is empty.
func expectRefusal(t *testing.T, err error, message string) {
	t.Helper()
	if message == "" && err != nil {
		t.Errorf("the write must be accepted, but is refused: %v", err)
	}
	if message != "" && (err == nil || !strings.Contains(err.Error(), message)) {
		t.Errorf("the write must be refused with %q, found: %v", message, err)
	}
}

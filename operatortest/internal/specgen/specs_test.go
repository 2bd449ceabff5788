package specgen

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// specsOf parses a schema of spec and the sample's spec, both in flow YAML.
func specsOf(g Gomega, schema, sample string) *Specs {
	made := &Specs{schema: &apiextensionsv1.JSONSchemaProps{}, Values: map[string][]any{}}
	g.Expect(yaml.UnmarshalStrict([]byte(schema), made.schema)).To(Succeed())
	content, err := yaml.YAMLToJSON([]byte(`{"kind": A, "spec": ` + sample + `}`))
	g.Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{}
	g.Expect(object.UnmarshalJSON(content)).To(Succeed())
	made.Base = object.Object["spec"].(map[string]any)
	return made
}

func TestChangesOfASpec(t *testing.T) {
	cases := map[string]struct {
		schema, sample string
		values         map[string][]any
		immutable      []string
		fixed          map[string]string
		required       map[string]string
		want, unknown  []string
	}{
		"an integer goes to its bounds first": {
			schema: `{type: object, required: [size], properties: {size: {type: integer, minimum: 1, maximum: 5}}}`, sample: `{size: 2}`,
			want: []string{"spec.size from 2 to 1", "spec.size from 2 to 5", "spec.size from 2 to 3", "spec.size from 2 to 4"},
		},
		"exclusive bounds, and steps": {
			schema: `{type: object, required: [size], properties: {size: {type: integer, minimum: 0, exclusiveMinimum: true, maximum: 30, exclusiveMaximum: true, multipleOf: 10}}}`,
			sample: `{size: 10}`, want: []string{"spec.size from 10 to 20"},
		},
		"bounds that are not multiples": {
			schema: `{type: object, required: [size], properties: {size: {type: integer, minimum: 3, maximum: 19, multipleOf: 4}}}`,
			sample: `{size: 8}`, want: []string{"spec.size from 8 to 4", "spec.size from 8 to 16", "spec.size from 8 to 12"},
		},
		"an upper bound that is far away is not tried": {
			schema: `{type: object, required: [port], properties: {port: {type: integer, minimum: 1, maximum: 65535}}}`, sample: `{port: 80}`,
			want: []string{"spec.port from 80 to 1", "spec.port from 80 to 81", "spec.port from 80 to 82", "spec.port from 80 to 79"},
		},
		"an integer without bounds does not go below zero": {
			schema: `{type: object, required: [size], properties: {size: {type: integer}}}`, sample: `{size: 0}`,
			want: []string{"spec.size from 0 to 1", "spec.size from 0 to 2"},
		},
		"a number": {
			schema: `{type: object, required: [ratio], properties: {ratio: {type: number, minimum: 0, maximum: 1, multipleOf: 0.5}}}`, sample: `{ratio: 0.5}`,
			want: []string{"spec.ratio from 0.5 to 0", "spec.ratio from 0.5 to 1"},
		},
		"a field that must keep a value is not removed": {
			schema: `{type: object, properties: {colour: {type: string, enum: [red, green], nullable: true}}}`, sample: `{colour: green}`,
			required: map[string]string{"spec.colour": "the test says so"}, want: []string{`spec.colour from "green" to "red"`},
		},
		"a field that the sample lacks is added, an optional one is removed": {
			schema: `{type: object, properties: {colour: {type: string, enum: [red, green]}, size: {type: integer, maximum: 1}}}`, sample: `{colour: green}`,
			want: []string{`spec.colour from "green" to "red"`, `spec.colour from "green" to nothing`, "spec.size from nothing to 1"},
		},
		"a field with a default is never removed, and takes the default": {
			schema: `{type: object, properties: {size: {type: integer, minimum: 1, maximum: 2, default: 2}, shiny: {type: boolean, default: true}}}`, sample: `{size: 1, shiny: true}`,
			want: []string{"spec.shiny from true to false", "spec.size from 1 to 2"},
		},
		"an enumeration of one value can't change, and doesn't count as unknown": {
			schema: `{type: object, required: [mode], properties: {mode: {type: string, enum: [only]}}}`, sample: `{mode: only}`,
		},
		"a field that may be null": {
			schema: `{type: object, required: [shiny], properties: {shiny: {type: boolean, nullable: true}}}`, sample: `{shiny: true}`,
			want: []string{"spec.shiny from true to false", "spec.shiny from true to null"},
		},
		"strings of the minimum and the maximum length": {
			schema: `{type: object, required: [name], properties: {name: {type: string, minLength: 2, maxLength: 4}}}`, sample: `{name: abc}`,
			want: []string{`spec.name from "abc" to "aa"`, `spec.name from "abc" to "zzzz"`, `spec.name from "abc" to "bbb"`},
		},
		"strings of a format": {
			schema: `{type: object, required: [day], properties: {day: {type: string, format: date}}}`, sample: `{day: "2030-01-01"}`,
			want: []string{`spec.day from "2030-01-01" to "2031-12-31"`},
		},
		"a pattern is not guessed": {
			schema: `{type: object, required: [name], properties: {name: {type: string, pattern: ^a+$}}}`, sample: `{name: a}`,
			unknown: []string{"spec.name"},
		},
		"a pattern with declared values, whatever their Go type": {
			schema: `{type: object, required: [name], properties: {name: {type: string, pattern: ^a+$}, size: {type: integer}}}`, sample: `{name: a, size: 1}`,
			values: map[string][]any{"spec.name": {"a", "aaa"}, "spec.size": {int32(1), 7}},
			want:   []string{`spec.name from "a" to "aaa"`, "spec.size from 1 to 7", "spec.size from 1 to nothing"},
		},
		"fields of any form need declared values": {
			schema: `{type: object, properties: {any: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`, sample: `{any: {a: 1}}`,
			want: []string{`spec.any from {"a":1} to nothing`}, unknown: []string{"spec.any"},
		},
		"an integer or a string": {
			schema: `{type: object, required: [port], properties: {port: {x-kubernetes-int-or-string: true}}}`, sample: `{port: http}`,
			want: []string{`spec.port from "http" to 1`, `spec.port from "http" to 2`},
		},
		"a fixed field stays": {
			schema: `{type: object, properties: {a: {type: boolean}, c: {type: boolean}}, required: [a, c]}`, sample: `{a: true, c: true}`,
			fixed: map[string]string{"spec.a": "the test says so"}, want: []string{"spec.c from true to false"},
		},
		"an immutable field stays, with all fields inside it": {
			schema: `{type: object, properties: {a: {type: object, properties: {b: {type: boolean}}}, c: {type: boolean}}}`, sample: `{a: {b: true}, c: true}`,
			immutable: []string{"spec.a"}, want: []string{"spec.c from true to false", "spec.c from true to nothing"},
		},
		"an absent object is added, then its fields": {
			schema: `{type: object, properties: {limits: {type: object, required: [cpu], properties: {cpu: {type: integer, minimum: 1, maximum: 2}, burst: {type: boolean}}}}}`,
			sample: `{}`,
			want: []string{
				`spec.limits from nothing to {"cpu":1}`,
				"spec.limits.burst from nothing to true", "spec.limits.burst from nothing to false", "spec.limits.cpu from 1 to 2",
			},
		},
		"an object whose required field is unknown": {
			schema: `{type: object, properties: {ref: {type: object, required: [name], properties: {name: {type: string, pattern: a}}}}}`,
			sample: `{}`, unknown: []string{"spec.ref.name"},
		},
		"lists grow and shrink within their bounds, and each item changes": {
			schema: `{type: object, required: [ports], properties: {ports: {type: array, minItems: 1, maxItems: 3, items: {type: integer, minimum: 1, maximum: 3}}}}`,
			sample: `{ports: [1, 2]}`,
			want: []string{
				"spec.ports from [1,2] to [1,2,3]", "spec.ports from [1,2] to [1]",
				"spec.ports[0] from 1 to 3", "spec.ports[0] from 1 to 2", "spec.ports[1] from 2 to 1", "spec.ports[1] from 2 to 3",
			},
		},
		"an absent list gets one item": {
			schema: `{type: object, properties: {ports: {type: array, items: {type: boolean}}}}`, sample: `{}`,
			want: []string{"spec.ports from nothing to [true]", "spec.ports[0] from true to false"},
		},
		"the keys of a list's items stay different": {
			schema: `{type: object, required: [pools], properties: {pools: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name],
				items: {type: object, required: [name], properties: {name: {type: string, maxLength: 3}, size: {type: integer, default: 1, minimum: 1, maximum: 2}}}}}}`,
			sample: `{pools: [{name: a, size: 1}]}`,
			want: []string{
				`spec.pools from [{"name":"a","size":1}] to [{"name":"a","size":1},{"name":"zzz","size":1}]`,
				`spec.pools from [{"name":"a","size":1}] to []`,
				`spec.pools[0].name from "a" to "zzz"`, `spec.pools[0].name from "a" to "bb"`, "spec.pools[0].size from 1 to 2",
			},
		},
		"declared values of a list's items": {
			schema: `{type: object, required: [pools], properties: {pools: {type: array, minItems: 1, maxItems: 1, items: {type: object, properties: {size: {type: string, pattern: s}}}}}}`,
			sample: `{pools: [{size: s-1}]}`, values: map[string][]any{"spec.pools[].size": {"s-1", "s-2"}},
			want: []string{`spec.pools[0].size from "s-1" to "s-2"`, `spec.pools[0].size from "s-1" to nothing`},
		},
		"maps get and lose a key, and each value changes": {
			schema: `{type: object, properties: {labels: {type: object, additionalProperties: {type: boolean}}}}`, sample: `{labels: {a: true}}`,
			want: []string{
				`spec.labels from {"a":true} to {"a":true,"added":true}`, `spec.labels from {"a":true} to {}`,
				`spec.labels from {"a":true} to nothing`, "spec.labels.a from true to false",
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			specs := specsOf(g, c.schema, c.sample)
			specs.Immutable, specs.fixed, specs.required = c.immutable, c.fixed, c.required
			for path, values := range c.values {
				var err error
				specs.Values[path], err = asJSON(values)
				g.Expect(err).NotTo(HaveOccurred())
			}
			before := fmt.Sprint(specs.Base)
			changes, unknown := specs.Changes()
			var found []string
			for _, change := range changes {
				for _, candidate := range change.Candidates {
					found = append(found, candidate.What)
				}
			}
			g.Expect(found).To(Equal(c.want))
			g.Expect(unknown).To(Equal(c.unknown))
			g.Expect(fmt.Sprint(specs.Base)).To(Equal(before), "the sample itself must not change")
		})
	}
}

func TestDeclares(t *testing.T) {
	schema := `{type: object, properties: {image: {type: string}, pools: {type: array, items: {type: object, properties: {size: {type: integer}}}},
		labels: {type: object, additionalProperties: {type: string}}, any: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`
	cases := map[string]struct {
		path string
		want bool
	}{
		"the whole spec":            {"spec", true},
		"a field":                   {"spec.image", true},
		"a field that is misspelt":  {"spec.imgae", false},
		"a field outside the spec":  {"status.image", false},
		"a list's items":            {"spec.pools[]", true},
		"a field of a list's items": {"spec.pools[].size", true},
		"a list's items without []": {"spec.pools.size", false},
		"a map's values":            {"spec.labels.*", true},
		"a field below a string":    {"spec.image.tag", false},
		"a field of any form":       {"spec.any.thing", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(declares(specsOf(g, schema, "{}").schema, c.path)).To(Equal(c.want))
		})
	}
}

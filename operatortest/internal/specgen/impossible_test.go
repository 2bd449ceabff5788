package specgen

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestImpossible(t *testing.T) {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	labels := apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}}
	container := object(map[string]apiextensionsv1.JSONSchemaProps{
		"image": text, "resources": object(map[string]apiextensionsv1.JSONSchemaProps{"requests": labels}),
	})
	pod := object(map[string]apiextensionsv1.JSONSchemaProps{
		"nodeSelector": labels,
		"containers":   {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &container}},
	})
	schema := object(map[string]apiextensionsv1.JSONSchemaProps{
		"pod": pod, "absent": container, "image": object(nil), "resources": labels, "fixed": object(map[string]apiextensionsv1.JSONSchemaProps{"image": text}),
	})
	base := map[string]any{
		"fixed": map[string]any{"image": "kept"},
		"pod":   map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a:1"}, map[string]any{"name": "b"}}},
	}
	specs := &Specs{schema: &schema, Base: base, fixed: map[string]string{"spec.fixed": "it must stay"}}

	g := NewWithT(t)
	found := map[string]string{}
	for _, candidate := range specs.Impossible() {
		found[candidate.What] = OneLine(candidate.To)
	}
	const before, after = `{"fixed":{"image":"kept"},"pod":{"containers":[`, `,{"name":"b"}]}}`
	g.Expect(found).To(Equal(map[string]string{
		`spec.pod.containers[0].image is "operatortest.example.com/unpullable:1"`: before + `{"image":"operatortest.example.com/unpullable:1","name":"a"}` + after,
		`spec.pod.containers[0].resources is {"requests":{"cpu":"1000000"}}`:      before + `{"image":"a:1","name":"a","resources":{"requests":{"cpu":"1000000"}}}` + after,
		`spec.pod.nodeSelector is {"operatortest.example.com/no-such-node":"true"}`: `{"fixed":{"image":"kept"},"pod":{"containers":[{"image":"a:1","name":"a"},{"name":"b"}],` +
			`"nodeSelector":{"operatortest.example.com/no-such-node":"true"}}}`,
	}))
	g.Expect(base["pod"]).NotTo(HaveKey("nodeSelector"), "the sample's spec must be left alone")
}

package behaviours

import (
	"encoding/json"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/specgen"
)

// specsOf parses the schema of the field spec, and the sample's spec. Both are in flow YAML.
func specsOf(g Gomega, schema, sample string) *specgen.Specs {
	spec := apiextensionsv1.JSONSchemaProps{}
	g.Expect(yaml.UnmarshalStrict([]byte(schema), &spec)).To(Succeed())
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1",
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
		}},
	}}
	made, err := specgen.New(definition, "v1", operatortest.Operator{})
	g.Expect(err).NotTo(HaveOccurred())
	var base map[string]any
	g.Expect(yaml.Unmarshal([]byte(sample), &base)).To(Succeed())
	content, err := json.Marshal(base)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(utiljson.Unmarshal(content, &made.Base)).To(Succeed())
	return made
}

//workshop:given 3.3b

package v1

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// readVersion returns the only version in the generated CRD.
func readVersion(g Gomega) apiextensionsv1.CustomResourceDefinitionVersion {
	content, err := os.ReadFile("../../config/crd/bases/webapp.my.domain_guestbooks.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	definition := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(yaml.UnmarshalStrict(content, definition)).To(Succeed())
	g.Expect(definition.Spec.Versions).To(HaveLen(1))
	return definition.Spec.Versions[0]
}

// TestConfigMapNames checks that the marker for spec.configMapName accepts valid names. Samples test the invalid ones.
func TestConfigMapNames(t *testing.T) {
	g := NewWithT(t)
	pattern := readVersion(g).Schema.OpenAPIV3Schema.Properties["spec"].Properties["configMapName"].Pattern
	g.Expect(pattern).NotTo(BeEmpty(), "ConfigMapName in guestbook_types.go needs a marker with a pattern")
	for _, name := range []string{"a", "1", "page-settings", "page--settings", "v1.2.page-settings"} {
		g.Expect(name).To(MatchRegexp(pattern), "a ConfigMap may have this name, so spec.configMapName must accept it")
	}
}

// TestDefinition checks the columns, the selectable field and the scale subresource, which no sample can test.
func TestDefinition(t *testing.T) {
	g := NewWithT(t)
	version := readVersion(g)
	columns, wide, order := []string{}, []string{}, []string{}
	for _, column := range version.AdditionalPrinterColumns {
		order = append(order, column.Name)
		shown := column.Name + " " + strings.ReplaceAll(column.JSONPath, "'", `"`) // a path may have single or double quotes
		if column.Priority == 0 {
			columns = append(columns, shown)
		} else {
			wide = append(wide, shown)
		}
	}
	g.Expect(columns).To(Equal([]string{
		"Size .spec.size",
		`Ready .status.conditions[?(@.type=="Ready")].status`,
		`Reason .status.conditions[?(@.type=="Ready")].reason`,
		"Active .status.active",
		"Age .metadata.creationTimestamp",
	}), "the columns of kubectl get")
	g.Expect(wide).To(Equal([]string{"Alias .spec.alias", "Settings .spec.configMapName"}), "the columns that -o wide adds")
	g.Expect(order).To(Equal([]string{"Size", "Ready", "Reason", "Active", "Alias", "Settings", "Age"}), "kubectl shows the columns in the order of their markers")
	g.Expect(version.SelectableFields).To(ConsistOf(apiextensionsv1.SelectableField{JSONPath: ".spec.configMapName"}))
	g.Expect(version.Subresources.Scale).To(Equal(&apiextensionsv1.CustomResourceSubresourceScale{
		SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.replicas", LabelSelectorPath: new(".status.selector"),
	}), "kubectl scale and autoscalers need this subresource")
}

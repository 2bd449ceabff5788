package v1alpha1

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

func TestFooHasTheFieldsOfItsSample(t *testing.T) {
	g := NewWithT(t)
	sample, err := os.ReadFile("../../../../config/samples/example_v1alpha1_foo_full.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	foo := &Foo{}
	g.Expect(yaml.UnmarshalStrict(sample, foo)).To(Succeed(), "FooSpec in types.go must have every field of the sample, under its JSON name")
	g.Expect(foo.Spec).To(HaveField("DeploymentName", "web"))
	g.Expect(foo.Spec).To(HaveField("Replicas", BeEquivalentTo(3)))
	g.Expect(foo.Spec).To(HaveField("Image", "nginxinc/nginx-unprivileged:1.29.1-alpine"))
	var raw struct{ Spec map[string]any }
	g.Expect(yaml.Unmarshal(sample, &raw)).To(Succeed())
	wanted, err := yaml.Marshal(raw.Spec)
	g.Expect(err).NotTo(HaveOccurred())
	written, err := yaml.Marshal(foo.Spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written).To(MatchYAML(wanted), "no field of the sample may be lost")
	g.Expect(foo.DeepCopy()).To(Equal(foo), "DeepCopy must copy every field: run make generate")
}

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
	g.Expect(yaml.UnmarshalStrict(sample, foo)).To(Succeed(), "FooSpec in types.go has every field of the sample, by its JSON name")
	written, err := yaml.Marshal(foo.Spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written).To(MatchYAML("deploymentName: web\nreplicas: 3\nimage: nginxinc/nginx-unprivileged:1.29.1-alpine\n"))
	g.Expect(foo.DeepCopy()).To(Equal(foo), "make generate writes DeepCopy")
}

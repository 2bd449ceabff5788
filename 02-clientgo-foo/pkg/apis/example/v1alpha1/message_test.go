package v1alpha1

//workshop:given 2.15a

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

const samples = "../../../../config/samples/"

func readFoo(g Gomega, content []byte) *Foo {
	foo := &Foo{}
	g.Expect(yaml.UnmarshalStrict(content, foo)).To(Succeed(), "FooSpec in types.go must have every field of the sample, under its JSON name")
	return foo
}

func TestOnlyTheFullSampleHasAMessage(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile(samples + "example_v1alpha1_foo_full.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(readFoo(g, content).Spec).To(HaveField("Message", "Good morning"), "config/samples/example_v1alpha1_foo_full.yaml must set every field of the spec")

	content, err = os.ReadFile(samples + "example_v1alpha1_foo.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.Marshal(readFoo(g, content))).NotTo(ContainSubstring("message"), "an empty message must be left out, see omitempty")
}

func TestASampleHasAMessageThatIsTooLong(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile(samples + "invalid/message-too-long.yaml")
	g.Expect(err).NotTo(HaveOccurred(), "every validation marker must have a sample in config/samples/invalid")
	g.Expect(string(content)).To(HavePrefix("# refused: spec.message: Too long"), "the first line must say why the sample is refused, as in the other files in config/samples/invalid")
	spec := readFoo(g, content).Spec
	characters := func(message string) []rune { return []rune(message) }
	g.Expect(spec).To(HaveField("Message", WithTransform(characters, HaveLen(257))), "the message must be exactly one character too long")
	g.Expect(spec).To(HaveField("DeploymentName", Not(BeEmpty())), "only the message of the file may be invalid")
}

package v1alpha1

//workshop:given 4.14a

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

func readFile(g Gomega, name string) string {
	content, err := os.ReadFile("../../config/" + name)
	g.Expect(err).NotTo(HaveOccurred(), "the chapter lists the files that a new field needs")
	return string(content)
}

func TestTheFullSampleSetsTheConnectionLimit(t *testing.T) {
	g := NewWithT(t)
	memcached := &Memcached{}
	content := readFile(g, "samples/cache_v1alpha1_memcached_full.yaml")
	g.Expect(yaml.UnmarshalStrict([]byte(content), memcached)).To(Succeed(), "MemcachedSpec must have every field of the sample, under its JSON name")
	g.Expect(memcached.Spec).To(HaveField("MaxConnections", BeEquivalentTo(2048)), "config/samples/cache_v1alpha1_memcached_full.yaml must set every field of the spec")
}

func TestInvalidSamplesHaveARefusedConnectionLimit(t *testing.T) {
	for name, want := range map[string]int32{"max-connections-too-small.yaml": 15, "max-connections-too-large.yaml": 16385} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			memcached := &Memcached{}
			content := readFile(g, "samples/invalid/"+name)
			g.Expect(content).To(HavePrefix("# refused: spec.maxConnections in body should be "), "the first line must say why the API server refuses the sample, as in the other files in config/samples/invalid")
			g.Expect(yaml.UnmarshalStrict([]byte(content), memcached)).To(Succeed())
			g.Expect(memcached.Spec).To(HaveField("MaxConnections", want), "maxConnections must be the nearest number outside the limits")
			g.Expect(memcached.Spec).To(HaveField("Size", BeNumerically(">", 0)), "nothing but the limit may be wrong in the file")
		})
	}
}

package v1alpha1

//workshop:given 4.18

import (
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// TestConsolesShowTheConnectionLimit compares the descriptor of maxConnections with the one that operator-sdk would
// generate from the field's marker.
func TestConsolesShowTheConnectionLimit(t *testing.T) {
	g := NewWithT(t)
	source, err := os.ReadFile("memcached_types.go")
	g.Expect(err).NotTo(HaveOccurred())
	field := regexp.MustCompile(`(?:\t//.*\n)+\tMaxConnections `).FindString(string(source))
	marker := regexp.MustCompile(`\+operator-sdk:csv:customresourcedefinitions:type=spec,displayName="([^"]+)",xDescriptors=\{([^}]*)\}`).FindStringSubmatch(field)
	g.Expect(marker).NotTo(BeNil(), "MaxConnections needs a marker such as that of MemoryMegabytes, see memcached_types.go")

	csv := struct {
		Spec struct {
			CRDs struct {
				Owned []struct {
					SpecDescriptors []struct {
						Path, DisplayName string
						Shown             []string `json:"x-descriptors"`
					}
				}
			} `json:"customresourcedefinitions"`
		}
	}{}
	g.Expect(yaml.Unmarshal([]byte(readFile(g, "manifests/bases/memcached-operator.clusterserviceversion.yaml")), &csv)).To(Succeed())
	for _, descriptor := range csv.Spec.CRDs.Owned[0].SpecDescriptors {
		if descriptor.Path == "maxConnections" {
			g.Expect(descriptor.DisplayName).To(Equal(marker[1]), "the descriptor and the marker differ")
			g.Expect(`"`+strings.Join(descriptor.Shown, `","`)+`"`).To(Equal(marker[2]), "the descriptor and the marker differ")
			g.Expect(marker[2]).To(And(ContainSubstring("ui:number"), ContainSubstring("ui:advanced")))
			return
		}
	}
	g.Expect("no descriptor").To(Equal("a descriptor with the path maxConnections"), "operator-sdk would generate it from the marker")
}

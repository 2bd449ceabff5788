package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

// stageRoot is the folder of stage 4, whose bundle these tests make and check.
const stageRoot = "../../04-operatorsdk-memcached"

// clusterServiceVersion contains the fields of a ClusterServiceVersion that the tests read.
type clusterServiceVersion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		DisplayName    string
		Description    string
		Version        string
		MinKubeVersion string
		Maturity       string
		Keywords       []string
		Provider       struct{ Name, URL string }
		Maintainers    []struct{ Name, Email string }
		Links          []struct{ Name, URL string }
		Icon           []struct{ Base64Data, MediaType string }
		InstallModes   []struct {
			Type      string
			Supported bool
		}
		RelatedImages             []relatedImage
		CustomResourceDefinitions struct{ Owned []description }
		Install                   struct {
			Strategy string
			Spec     struct {
				Permissions        []permission
				ClusterPermissions []permission
				Deployments        []struct {
					Name string
					Spec struct{ Template corev1.PodTemplateSpec }
				}
			}
		}
	}
}

type permission struct {
	ServiceAccountName string
	Rules              []rbacv1.PolicyRule
}

type description struct {
	Name, Version, Kind, DisplayName, Description string
	Resources                                     []struct{ Kind, Name, Version string }
	SpecDescriptors, StatusDescriptors            []descriptor
}

type descriptor struct {
	Path, DisplayName, Description string
	Shown                          []string `json:"x-descriptors"`
}

// readYAML reads a file of stage 4 into a Go type.
func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(stageRoot, path))
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "`make bundle` and `make manifests` write the generated files")
	NewWithT(t).Expect(yaml.Unmarshal(content, into)).To(Succeed(), path)
}

// readVersion reads the ClusterServiceVersion of stage 4's bundle.
func readVersion(t *testing.T) clusterServiceVersion {
	t.Helper()
	var csv clusterServiceVersion
	readYAML(t, "bundle/manifests/memcached-operator.clusterserviceversion.yaml", &csv)
	return csv
}

// readAnnotations reads the annotations of stage 4's bundle.
func readAnnotations(t *testing.T) map[string]string {
	t.Helper()
	var file struct{ Annotations map[string]string }
	readYAML(t, "bundle/metadata/annotations.yaml", &file)
	return file.Annotations
}

// makeVariable returns the default that the Makefile gives a variable.
func makeVariable(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(stageRoot, "Makefile"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	match := regexp.MustCompile(`(?m)^` + name + ` \?= (.+)$`).FindSubmatch(content)
	NewWithT(t).Expect(match).NotTo(BeNil(), "the Makefile must set %s", name)
	return string(match[1])
}

// buildManifests returns the manifests from which `make bundle` makes the bundle.
func buildManifests(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	kustomize, err := filepath.Abs(filepath.Join(stageRoot, "../bin/kustomize"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kustomize).To(BeAnExistingFile(), "run `make tools` in the repository's root")
	var problems strings.Builder
	command := exec.CommandContext(t.Context(), kustomize, "build", filepath.Join(stageRoot, "config/manifests"))
	command.Stderr = &problems
	manifests, err := command.Output()
	g.Expect(err).NotTo(HaveOccurred(), problems.String())

	release := makeVariable(t, "IMAGE_TAG_BASE") + ":v" + makeVariable(t, "VERSION")
	return strings.ReplaceAll(string(manifests), "image: "+makeVariable(t, "IMG")+"\n", "image: "+release+"\n")
}

// fieldsOf returns the names of the fields of the spec or the status in the CRD.
func fieldsOf(t *testing.T, part string) sets.Set[string] {
	t.Helper()
	type schema struct {
		Properties map[string]struct{ Properties map[string]any }
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	readYAML(t, "config/crd/bases/cache.example.com_memcacheds.yaml", &definition)
	NewWithT(t).Expect(definition.Spec.Versions).To(HaveLen(1), "the CRD must have one version, because these tests read only the first")
	return sets.KeySet(definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[part].Properties)
}

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/04-operatorsdk-memcached/internal/controller"
	"example.com/operator-workshop/manager"
)

// TestTheBundleTellsTheOperatorItsNamespaces reads the Deployment that OLM would create. The bundle's other tests
// are in cmd/bundle at the root of the repository.
func TestTheBundleTellsTheOperatorItsNamespaces(t *testing.T) {
	g := NewWithT(t)
	var csv struct {
		Spec struct {
			InstallModes []struct {
				Type      string
				Supported bool
			}
			Install struct {
				Spec struct {
					Deployments []struct{ Spec appsv1.DeploymentSpec }
				}
			}
		}
	}
	content, err := os.ReadFile(filepath.Join("..", "bundle", "manifests", "memcached-operator.clusterserviceversion.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.Unmarshal(content, &csv)).To(Succeed())
	modes := map[string]bool{}
	for _, mode := range csv.Spec.InstallModes {
		modes[mode.Type] = mode.Supported
	}
	g.Expect(modes).To(Equal(map[string]bool{"OwnNamespace": true, "SingleNamespace": true, "MultiNamespace": true, "AllNamespaces": true}))
	g.Expect(csv.Spec.Install.Spec.Deployments).To(HaveLen(1))
	variables := map[string]corev1.EnvVar{}
	for _, variable := range csv.Spec.Install.Spec.Deployments[0].Spec.Template.Spec.Containers[0].Env {
		variables[variable.Name] = variable
	}
	g.Expect(variables).To(HaveKey("WATCH_NAMESPACE"))
	source := variables["WATCH_NAMESPACE"].ValueFrom
	g.Expect(source.FieldRef.FieldPath).To(Equal("metadata.annotations['olm.targetNamespaces']"), "OLM writes the namespaces there")
	g.Expect(variables).To(HaveKeyWithValue("MEMCACHED_IMAGE", HaveField("Value", controller.DefaultImage)), "the bundle must set the built-in default")

	options := manager.Default()
	image, err := readEnvironment(&options, func(name string) string {
		if name == watchNamespace {
			return "a,b"
		}
		return variables[name].Value
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(options.Namespaces).To(Equal([]string{"a", "b"}), "OLM separates namespaces with commas")
	g.Expect(image).To(Equal(controller.DefaultImage))
}

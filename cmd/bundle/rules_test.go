package main

import (
	"bytes"
	"compress/gzip"
	"net/mail"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The rules are the requirements and best practices for operators in OLM's catalogs.
func TestTheBundleFollowsTheRules(t *testing.T) {
	csv, annotations := readVersion(t), readAnnotations(t)
	version, image := makeVariable(t, "VERSION"), makeVariable(t, "IMAGE_TAG_BASE")+":v"+makeVariable(t, "VERSION")
	rules := map[string]func(g Gomega){
		"names and versions agree": func(g Gomega) {
			g.Expect(csv.APIVersion + " " + csv.Kind).To(Equal("operators.coreos.com/v1alpha1 ClusterServiceVersion"))
			g.Expect(csv.Name).To(Equal("memcached-operator.v" + version))
			g.Expect(csv.Spec.Version).To(Equal(version))
			g.Expect(annotations).To(HaveKeyWithValue(bundleLabel+"package.v1", "memcached-operator"))
			g.Expect(csv.Annotations).To(HaveKeyWithValue("containerImage", image))
			g.Expect(csv.Spec.Install.Spec.Deployments[0].Spec.Template.Spec.Containers[0].Image).To(Equal(image))
		},
		"channels have the usual names": func(g Gomega) {
			channels := strings.Split(annotations[bundleLabel+"channels.v1"], ",")
			g.Expect(channels).To(HaveEach(MatchRegexp(`^(candidate|fast|stable)`)))
			g.Expect(channels).To(ContainElement(annotations[bundleLabel+"channel.default.v1"]))
		},
		"a reader learns what the operator is": func(g Gomega) {
			g.Expect(csv.Spec.DisplayName).NotTo(BeEmpty())
			g.Expect(csv.Annotations["description"]).NotTo(BeEmpty())
			g.Expect(csv.Spec.Description).To(ContainSubstring("\n## "), "the description must be Markdown with headings")
			g.Expect(csv.Spec.Keywords).NotTo(BeEmpty())
			g.Expect(csv.Spec.Maturity).To(BeElementOf("planning", "pre-alpha", "alpha", "beta", "stable", "mature", "inactive", "deprecated"))
			g.Expect(csv.Annotations["capabilities"]).To(BeElementOf("Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"))
			g.Expect(csv.Annotations["categories"]).To(BeElementOf("AI/Machine Learning", "Application Runtime", "Big Data", "Cloud Provider",
				"Database", "Developer Tools", "Integration & Delivery", "Logging & Tracing", "Modernization & Migration", "Monitoring",
				"Networking", "Observability", "OpenShift Optional", "Security", "Storage", "Streaming & Messaging"))
			_, err := time.Parse(time.RFC3339, csv.Annotations["createdAt"])
			g.Expect(err).NotTo(HaveOccurred())
		},
		"a reader learns who provides the operator": func(g Gomega) {
			g.Expect(csv.Spec.Provider.Name).NotTo(BeEmpty())
			g.Expect(csv.Annotations["support"]).NotTo(BeEmpty())
			g.Expect(csv.Spec.Maintainers).NotTo(BeEmpty())
			for _, maintainer := range csv.Spec.Maintainers {
				g.Expect(maintainer.Name).NotTo(BeEmpty())
				_, err := mail.ParseAddress(maintainer.Email)
				g.Expect(err).NotTo(HaveOccurred())
			}
			links := []string{csv.Spec.Provider.URL, csv.Annotations["repository"]}
			g.Expect(csv.Spec.Links).NotTo(BeEmpty())
			for _, link := range csv.Spec.Links {
				g.Expect(link.Name).NotTo(BeEmpty())
				links = append(links, link.URL)
			}
			for _, link := range links {
				_, err := url.ParseRequestURI(link)
				g.Expect(err).NotTo(HaveOccurred())
			}
		},
		"it says which Kubernetes it needs": func(g Gomega) {
			g.Expect(isVersion(csv.Spec.MinKubeVersion)).To(BeTrue(), csv.Spec.MinKubeVersion)
		},
		"each kind is described, with the objects that the operator makes for it": func(g Gomega) {
			for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
				g.Expect(owned.DisplayName).NotTo(BeEmpty())
				g.Expect(owned.Description).NotTo(BeEmpty())
				kinds := []string{}
				for _, resource := range owned.Resources {
					kinds = append(kinds, resource.Kind)
				}
				g.Expect(kinds).To(ContainElements("Deployment", "Service", "PodDisruptionBudget"))
			}
		},
		"no rule has a star or is about CRDs": func(g Gomega) {
			install := csv.Spec.Install.Spec
			for _, granted := range append(install.Permissions, install.ClusterPermissions...) {
				for _, rule := range granted.Rules {
					g.Expect(append(append(rule.APIGroups, rule.Resources...), rule.Verbs...)).NotTo(ContainElement("*"))
					g.Expect(rule.APIGroups).NotTo(ContainElement("apiextensions.k8s.io"), "OLM manages the CRDs")
				}
			}
		},
		"each container has requests and limits": func(g Gomega) {
			for _, container := range csv.Spec.Install.Spec.Deployments[0].Spec.Template.Spec.Containers {
				for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
					g.Expect(container.Resources.Requests).To(HaveKey(name), container.Name)
					g.Expect(container.Resources.Limits).To(HaveKey(name), container.Name)
				}
			}
		},
		"all images are listed and pinned": func(g Gomega) {
			var names []string
			for _, image := range csv.Spec.RelatedImages {
				names = append(names, image.Name)
				g.Expect(isPinned(image.Image)).To(BeTrue(), image.Image)
			}
			g.Expect(names).To(Equal([]string{"manager", "memcached"}))
		},
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) { rule(NewWithT(t)) })
	}
}

func TestTheManifestsFollowTheRules(t *testing.T) {
	g := NewWithT(t)
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	for path, content := range readFolder(t, filepath.Join(stageRoot, "bundle/manifests")) {
		_, err := writer.Write([]byte(content))
		g.Expect(err).NotTo(HaveOccurred())
		manifest := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal([]byte(content), &manifest.Object)).To(Succeed(), path)
		if manifest.GetKind() == "ClusterServiceVersion" {
			continue
		}
		g.Expect(manifest.GetNamespace()).To(BeEmpty(), "%s: OLM puts it in the operator's namespace", path)
		g.Expect(manifest.GetAPIVersion()).To(MatchRegexp(`(^|/)v1$`), "%s: an older version may be gone from a newer cluster", path)
		g.Expect(manifest.GetKind()).NotTo(BeElementOf("ServiceAccount", "Deployment", "Namespace"), "%s: OLM makes the account and the Deployment, and the user makes the namespace", path)
	}
	g.Expect(writer.Close()).To(Succeed())
	g.Expect(packed.Len()).To(BeNumerically("<", 1<<20), "OLM keeps the packed bundle in a ConfigMap, which holds at most 1 MiB")
}

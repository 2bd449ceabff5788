package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// gadgetFlags are the flags for tests that are not about flags.
var gadgetFlags = []string{"--version=0.1.0", "--channels=candidate,fast", "--default-channel=fast"}

// gadgetManifests returns the manifests of an operator for Gadgets.
func gadgetManifests(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("testdata/manifests.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// readFolder returns the contents of all files in a folder, by their paths relative to it.
func readFolder(t *testing.T, dir string) map[string]string {
	t.Helper()
	contents := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		contents[path] = string(content)
		return err
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return contents
}

// gadgetVersion contains the fields of the Gadget operator's ClusterServiceVersion that the tests read.
type gadgetVersion struct {
	Metadata map[string]any
	Spec     map[string]any
}

func readGadgetVersion(t *testing.T, dir string) gadgetVersion {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(dir, "bundle/manifests/gadget-operator.clusterserviceversion.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	var csv gadgetVersion
	g.Expect(yaml.Unmarshal(content, &csv)).To(Succeed())
	return csv
}

func TestRunWritesTheBundle(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	stale := filepath.Join(dir, "bundle", "manifests", "stale.yaml")
	g.Expect(os.MkdirAll(filepath.Dir(stale), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(stale, nil, 0o644)).To(Succeed())

	g.Expect(run(gadgetFlags, strings.NewReader(gadgetManifests(t)), dir)).To(Succeed())
	written := readFolder(t, dir)
	g.Expect(slices.Sorted(maps.Keys(written))).To(Equal([]string{
		"bundle.Dockerfile",
		"bundle/manifests/gadget-operator.clusterserviceversion.yaml",
		"bundle/manifests/metrics_v1_service.yaml",
		"bundle/manifests/read_rbac.authorization.k8s.io_v1_rolebinding.yaml",
		"bundle/manifests/reader_v1_serviceaccount.yaml",
		"bundle/manifests/toys.example.com_gadgets.yaml",
		"bundle/manifests/work_rbac.authorization.k8s.io_v1_role.yaml",
		"bundle/metadata/annotations.yaml",
	}), "OLM makes the operator's own roles and account, the user makes the namespace, and stale.yaml must be gone")
	g.Expect(written["bundle/manifests/metrics_v1_service.yaml"]).NotTo(ContainSubstring("namespace"), "OLM puts the Service in the operator's namespace, so its manifest must name none")

	g.Expect(run(gadgetFlags, strings.NewReader(gadgetManifests(t)), dir)).To(Succeed())
	g.Expect(readFolder(t, dir)).To(Equal(written), "a second run must change nothing")
}

func TestClusterServiceVersion(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(run(gadgetFlags, strings.NewReader(gadgetManifests(t)), dir)).To(Succeed())
	csv := readGadgetVersion(t, dir)
	g.Expect(csv.Metadata).To(HaveKeyWithValue("name", "gadget-operator.v0.1.0"))
	g.Expect(csv.Metadata).To(HaveKeyWithValue("annotations", HaveKeyWithValue("containerImage", "registry.example.com:5000/gadget-operator:v1")))
	g.Expect(csv.Metadata["annotations"]).To(HaveKeyWithValue("alm-examples", And(
		MatchJSON(`[{"apiVersion": "toys.example.com/v1", "kind": "Gadget", "metadata": {"name": "sample"}, "spec": {"text": "1 < 2"}}]`),
		ContainSubstring("1 < 2"))), "people read the examples, so < must not be escaped")
	g.Expect(csv.Spec).To(HaveKeyWithValue("displayName", "Gadgets"), "what people wrote must stay")
	g.Expect(csv.Spec).To(HaveKeyWithValue("version", "0.1.0"))
	g.Expect(yaml.Marshal(csv.Spec["customresourcedefinitions"])).To(MatchYAML(`
owned:
- name: gadgets.toys.example.com
  version: v1
  kind: Gadget
  description: Gadget is a toy.
  specDescriptors:
  - {path: text, description: Text is printed on it.}
  - {path: paint.color, description: "Any color, so long as it is black."}
  statusDescriptors:
  - {path: ready, description: Ready says whether it can be played with.}
`), "descriptions must come from the CRD, unless people wrote others")
	g.Expect(yaml.Marshal(csv.Spec["relatedImages"])).To(MatchYAML(`
- {name: manager, image: "registry.example.com:5000/gadget-operator:v1"}
- {name: front-end, image: "registry.example.com:5000/front@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
`))
	install := csv.Spec["install"].(map[string]any)
	g.Expect(install).To(HaveKeyWithValue("strategy", "deployment"))
	strategy := install["spec"].(map[string]any)
	g.Expect(yaml.Marshal(strategy["permissions"])).To(MatchYAML(`
- serviceAccountName: manager
  rules:
  - {apiGroups: [apps], resources: [deployments], verbs: [patch]}
`), "the permissions must be the rules that a RoleBinding grants, even those of a ClusterRole")
	g.Expect(yaml.Marshal(strategy["clusterPermissions"])).To(MatchYAML(`
- serviceAccountName: manager
  rules:
  - {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
`), "the cluster permissions must be the rules that a ClusterRoleBinding grants")
	g.Expect(strategy["deployments"]).To(ConsistOf(And(
		HaveKeyWithValue("name", "manager"),
		HaveKeyWithValue("label", HaveKeyWithValue("app", "gadgets")),
		HaveKeyWithValue("spec", HaveKeyWithValue("replicas", BeNumerically("==", 1))),
	)))
}

func TestTheRulesOfARoleAreGrantedOnceInEachScope(t *testing.T) {
	g := NewWithT(t)
	again := `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: work, namespace: other-gadgets}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: work}
subjects: [{kind: ServiceAccount, name: manager, namespace: gadgets}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tokens-again}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tokens}
subjects: [{kind: ServiceAccount, name: manager, namespace: gadgets}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: work}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: work}
subjects: [{kind: ServiceAccount, name: manager, namespace: gadgets}]
`
	dir := t.TempDir()
	g.Expect(run(gadgetFlags, strings.NewReader(gadgetManifests(t)+again), dir)).To(Succeed())
	strategy := readGadgetVersion(t, dir).Spec["install"].(map[string]any)["spec"].(map[string]any)
	g.Expect(yaml.Marshal(strategy["permissions"])).To(MatchYAML(`
- serviceAccountName: manager
  rules:
  - {apiGroups: [apps], resources: [deployments], verbs: [patch]}
`), "two RoleBindings of one role must give its rules once, see grants in permissions.go")
	g.Expect(yaml.Marshal(strategy["clusterPermissions"])).To(MatchYAML(`
- serviceAccountName: manager
  rules:
  - {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
  - {apiGroups: [apps], resources: [deployments], verbs: [patch]}
`), "a ClusterRoleBinding must count even if a RoleBinding grants the same role, because it grants the role everywhere")
}

func TestARoleOfOthersGoesIntoTheBundle(t *testing.T) {
	g := NewWithT(t)
	others := `
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: other-gadgets}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tokens-of-others}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tokens}
subjects: [{kind: ServiceAccount, name: manager, namespace: other-gadgets}]
`
	dir := t.TempDir()
	g.Expect(run(gadgetFlags, strings.NewReader(gadgetManifests(t)+others), dir)).To(Succeed())
	strategy := readGadgetVersion(t, dir).Spec["install"].(map[string]any)["spec"].(map[string]any)
	g.Expect(yaml.Marshal(strategy["clusterPermissions"])).To(ContainSubstring("tokenreviews"), "the operator must get the rules, too")
	var kinds []string
	for _, content := range readFolder(t, dir) {
		var object metav1.PartialObjectMetadata
		if yaml.Unmarshal([]byte(content), &object) == nil {
			kinds = append(kinds, object.Kind+" "+object.Name)
		}
	}
	g.Expect(kinds).To(ContainElements("ServiceAccount manager", "ClusterRoleBinding tokens-of-others", "ClusterRole tokens"), "the binding needs its role, and its account is not the operator's")
}

func TestLabels(t *testing.T) {
	g := NewWithT(t)
	made := makeLabels("gadget-operator", options{channels: []string{"candidate", "fast"}}, false)
	g.Expect(string(made.annotations())).To(And(ContainSubstring("channels.v1: candidate,fast\n"),
		Not(ContainSubstring("channel.default")), Not(ContainSubstring("scorecard"))))
	g.Expect(string(made.dockerfile())).To(And(ContainSubstring("channels.v1=candidate,fast\n"),
		Not(ContainSubstring("channel.default")), Not(ContainSubstring("scorecard"))), "an image without tests must not promise any")
}

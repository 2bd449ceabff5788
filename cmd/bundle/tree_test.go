package main

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestTheBundleMatchesTheConfiguration(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	flags := []string{"--version=" + makeVariable(t, "VERSION"), "--channels=" + makeVariable(t, "CHANNELS"), "--default-channel=" + makeVariable(t, "DEFAULT_CHANNEL")}
	g.Expect(run(flags, strings.NewReader(buildManifests(t)), dir)).To(Succeed())

	made := readFolder(t, dir)
	present := map[string]string{"bundle.Dockerfile": readFile(t, "bundle.Dockerfile")}
	for path, content := range readFolder(t, filepath.Join(stageRoot, bundleFolder)) {
		present[bundleFolder+"/"+path] = content
	}
	const hint = "the bundle is out of date: run `make bundle`"
	g.Expect(slices.Sorted(maps.Keys(present))).To(Equal(slices.Sorted(maps.Keys(made))), hint)
	for path, content := range made {
		g.Expect(present[path]).To(Equal(content), "%s: %s", path, hint)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(stageRoot, path))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(content)
}

func TestThePermissionsMatchTheRoles(t *testing.T) {
	g := NewWithT(t)
	install := readVersion(t).Spec.Install.Spec
	rulesOf := func(name string) []rbacv1.PolicyRule {
		var role rbacv1.ClusterRole
		readYAML(t, "config/rbac/"+name, &role)
		g.Expect(role.Rules).NotTo(BeEmpty(), name)
		return role.Rules
	}
	account := install.Deployments[0].Spec.Template.Spec.ServiceAccountName
	namespaced := slices.Concat(rulesOf("role.yaml"), rulesOf("leader_election_role.yaml"))
	g.Expect(install.Permissions).To(HaveLen(1))
	g.Expect(install.Permissions[0].ServiceAccountName).To(Equal(account))
	g.Expect(install.Permissions[0].Rules).To(ConsistOf(namespaced), "the rules of role.yaml and leader_election_role.yaml must be granted in the namespaces that the operator watches")
	g.Expect(install.ClusterPermissions).To(HaveLen(1))
	g.Expect(install.ClusterPermissions[0].ServiceAccountName).To(Equal(account))
	g.Expect(install.ClusterPermissions[0].Rules).To(ConsistOf(rulesOf("metrics_auth_role.yaml")), "only rules about cluster-scoped resources may be granted everywhere")
}

func TestEachFieldHasADescriptor(t *testing.T) {
	owned := readVersion(t).Spec.CustomResourceDefinitions.Owned
	NewWithT(t).Expect(owned).To(HaveLen(1))
	for part, descriptors := range map[string][]descriptor{"spec": owned[0].SpecDescriptors, "status": owned[0].StatusDescriptors} {
		t.Run(part, func(t *testing.T) {
			g := NewWithT(t)
			var paths []string
			for _, descriptor := range descriptors {
				paths = append(paths, descriptor.Path)
				g.Expect(descriptor.DisplayName).NotTo(BeEmpty(), descriptor.Path)
				g.Expect(descriptor.Description).To(HaveSuffix("."), "%s: a form shows this sentence", descriptor.Path)
			}
			g.Expect(paths).To(ConsistOf(sets.List(fieldsOf(t, part))), "each field of the %s in the CRD must have one descriptor: write it in config/manifests/bases", part)
		})
	}
}

// The tests of the controller check whether the API server accepts the samples.
func TestTheExamplesAreTheSamples(t *testing.T) {
	g := NewWithT(t)
	var examples []any
	g.Expect(json.Unmarshal([]byte(readVersion(t).Annotations["alm-examples"]), &examples)).To(Succeed())
	var kustomization struct{ Resources []string }
	readYAML(t, "config/samples/kustomization.yaml", &kustomization)
	var samples []any
	for _, name := range kustomization.Resources {
		var sample any
		readYAML(t, "config/samples/"+name, &sample)
		samples = append(samples, sample)
	}
	g.Expect(samples).NotTo(BeEmpty())
	g.Expect(examples).To(ConsistOf(samples))
}

func TestTheImageHasTheAnnotationsAsLabels(t *testing.T) {
	g := NewWithT(t)
	labels := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^LABEL ([^=]+)=(.+)$`).FindAllStringSubmatch(readFile(t, "bundle.Dockerfile"), -1) {
		labels[match[1]] = match[2]
	}
	g.Expect(labels).To(Equal(readAnnotations(t)))
	for _, match := range regexp.MustCompile(`(?m)^COPY (\S+) /(\S+)$`).FindAllStringSubmatch(readFile(t, "bundle.Dockerfile"), -1) {
		g.Expect(filepath.Join(stageRoot, match[1])).To(BeADirectory())
		g.Expect(slices.Collect(maps.Values(labels))).To(ContainElement(match[2]), "a label must name each folder")
	}
}

func TestTheIconIsAPicture(t *testing.T) {
	g := NewWithT(t)
	icons := readVersion(t).Spec.Icon
	g.Expect(icons).To(HaveLen(1))
	g.Expect(icons[0].MediaType).To(Equal("image/svg+xml"))
	picture, err := base64.StdEncoding.DecodeString(icons[0].Base64Data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(picture)).To(Equal(readFile(t, "config/manifests/icon.svg")), "base64 -w0 config/manifests/icon.svg gives the text for config/manifests/bases")

	decoder := xml.NewDecoder(strings.NewReader(string(picture)))
	var outermost string
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		if element, begins := token.(xml.StartElement); begins && outermost == "" {
			outermost = element.Name.Space + " " + element.Name.Local
		}
	}
	g.Expect(outermost).To(Equal("http://www.w3.org/2000/svg svg"))
}

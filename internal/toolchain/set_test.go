package toolchain

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/repo"
)

func TestPinnedSet(t *testing.T) {
	g := NewWithT(t)
	r, err := repo.Find(".")
	g.Expect(err).NotTo(HaveOccurred())
	set, err := LoadSet(t.Context(), r.Root, Main)
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, component := range set.Components {
		names = append(names, component.Name)
	}
	g.Expect(names).To(ContainElements("etcd", "etcdctl", "etcdutl", "kube-apiserver", "kube-controller-manager",
		"kube-scheduler", "kubectl", "kwok", "controller-gen", "deepcopy-gen", "client-gen", "lister-gen",
		"informer-gen", "applyconfiguration-gen", "kustomize", "kind"))
	g.Expect(set.linkerFlags()).To(ContainSubstring("k8s.io/component-base/version.gitVersion=v1.37.1"))
	g.Expect(set.linkerFlags()).To(ContainSubstring("sigs.k8s.io/kwok/pkg/consts.Version=0.8.0"), "kwok adds the v itself")
}

func TestKeyDependsOnGoPlatformAndVersions(t *testing.T) {
	g := NewWithT(t)
	r, err := repo.Find(".")
	g.Expect(err).NotTo(HaveOccurred())
	set, err := LoadSet(t.Context(), r.Root, Main)
	g.Expect(err).NotTo(HaveOccurred())
	linux, darwin := Platform{"linux", "amd64"}, Platform{"darwin", "amd64"}
	base, err := set.key("go1.26.1", linux)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(set.key("go1.26.1", linux)).To(Equal(base))
	g.Expect(set.key("go1.26.2", linux)).NotTo(Equal(base))
	g.Expect(set.key("go1.26.1", darwin)).NotTo(Equal(base))
	set.versions["k8s.io/kubernetes"] = "v1.37.2"
	g.Expect(set.key("go1.26.1", linux)).NotTo(Equal(base))
}

func TestBinaryName(t *testing.T) {
	cases := map[string]string{
		"k8s.io/kubernetes/cmd/kubectl":                                   "kubectl",
		"sigs.k8s.io/kustomize/kustomize/v5":                              "kustomize",
		"go.etcd.io/etcd/server/v3":                                       "etcd",
		"github.com/prometheus-operator/prometheus-operator/cmd/operator": "prometheus-operator",
	}
	for pkg, want := range cases {
		t.Run(pkg, func(t *testing.T) { NewWithT(t).Expect(binaryName(pkg)).To(Equal(want)) })
	}
}

func TestParsePlatform(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ParsePlatform("darwin/arm64")).To(Equal(Platform{"darwin", "arm64"}))
	for _, bad := range []string{"", "linux", "linux/", "/amd64", "linux/amd64/v2"} {
		_, err := ParsePlatform(bad)
		g.Expect(err).To(MatchError(ContainSubstring("OS/ARCH")), "%q", bad)
	}
}

func TestExplain(t *testing.T) {
	failed := errors.New("exit status 1")
	cases := map[string]struct{ output, want string }{
		"a full disk":              {"# k8s.io/x\nwrite /tmp/a: no space left on device\n", "the disk is full"},
		"a name that is not found": {"go: x: Get \"https://proxy\": dial tcp: lookup proxy: no such host\n", "connect to the internet"},
		"a read-only cache":        {"go: could not create module cache: mkdir /home/x: read-only file system\n", "set GOCACHE and GOMODCACHE"},
		"a compiler out of memory": {"k8s.io/x: compile: signal: killed\n", "lack of memory"},
		"anything else":            {"# example.com/x\nx.go:1: broken\n", "x.go:1: broken"},
		"no message at all":        {"", "exit status 1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(explain(failed, []byte(c.output))).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

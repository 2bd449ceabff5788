package operatortest

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestFindAssets(t *testing.T) {
	t.Run("a folder without the programs is refused in one line that names the remedy", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		t.Setenv(assetsVariable, dir)
		_, err := findAssets()
		g.Expect(err).To(MatchError(filepath.Join(dir, "etcd") + " is missing: point KUBEBUILDER_ASSETS to a folder " +
			"that has it, or unset it and run `make tools` in the repository's root"))
	})
	t.Run("one missing program is named", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		t.Setenv(assetsVariable, dir)
		for _, program := range programs {
			g.Expect(os.WriteFile(filepath.Join(dir, program), nil, 0o700)).To(Succeed())
		}
		g.Expect(findAssets()).To(Equal(dir))
		g.Expect(os.Remove(filepath.Join(dir, "kwok"))).To(Succeed())
		_, err := findAssets()
		g.Expect(err).To(MatchError(HavePrefix(filepath.Join(dir, "kwok") + " is missing: ")))
	})
	t.Run("a fresh clone is told to build the tools", func(t *testing.T) {
		g := NewWithT(t)
		root, err := filepath.EvalSymlinks(t.TempDir())
		g.Expect(err).NotTo(HaveOccurred())
		stage := filepath.Join(root, "01-stage")
		g.Expect(os.MkdirAll(filepath.Join(root, "cmd", "workshop"), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(root, "cmd", "workshop", "main.go"), nil, 0o600)).To(Succeed())
		g.Expect(os.Mkdir(stage, 0o700)).To(Succeed())
		t.Setenv(assetsVariable, "")
		t.Chdir(stage)
		_, err = findAssets()
		g.Expect(err).To(MatchError(filepath.Join(root, "bin", "etcd") + " is missing: run `make tools` in " + root))
	})
	t.Run("outside the repository the variable is named", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv(assetsVariable, "")
		t.Chdir(t.TempDir())
		_, err := findAssets()
		g.Expect(err).To(MatchError(HaveSuffix("or set KUBEBUILDER_ASSETS to the folder that holds them")))
	})
}

func TestStartWithoutTools(t *testing.T) {
	g := NewWithT(t)
	t.Setenv(assetsVariable, t.TempDir())
	cluster := &Cluster{}
	err := cluster.Start(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("etcd is missing")))
	g.Expect(err.Error()).NotTo(ContainSubstring("\n"))
}

func TestStartOnAnExistingClusterNeedsAKubeconfig(t *testing.T) {
	t.Setenv(existingVariable, "true")
	cases := map[string]struct{ kubeconfig, want string }{
		"no kubeconfig is named": {"", "USE_EXISTING_CLUSTER=true needs KUBECONFIG to name the cluster's kubeconfig"},
		"the file is not there":  {"testdata/absent", "KUBECONFIG=testdata/absent holds no kubeconfig: bring a cluster up first"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv(kubeconfigVariable, c.kubeconfig)
			g.Expect((&Cluster{}).Start(t.Context())).To(MatchError("start the test cluster: " + c.want))
		})
	}
}

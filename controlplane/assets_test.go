package controlplane_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/controlplane"
)

func TestFindAssets(t *testing.T) {
	t.Run("a folder without the programs is refused, and the error says what to do", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		t.Setenv(controlplane.AssetsVariable, dir)
		_, err := controlplane.FindAssets()
		g.Expect(err).To(MatchError(filepath.Join(dir, "etcd") + " is missing: point KUBEBUILDER_ASSETS to a folder that has it, or unset it"))
	})
	t.Run("the error names the program that is missing", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		t.Setenv(controlplane.AssetsVariable, dir)
		for _, program := range controlplane.Programs() {
			g.Expect(os.WriteFile(filepath.Join(dir, program), nil, 0o700)).To(Succeed())
		}
		g.Expect(controlplane.FindAssets()).To(Equal(dir))
		g.Expect(os.Remove(filepath.Join(dir, "kwok"))).To(Succeed())
		_, err := controlplane.FindAssets()
		g.Expect(err).To(MatchError(HavePrefix(filepath.Join(dir, "kwok") + " is missing: ")))
	})
	t.Run("in a fresh clone, the error says how to build the tools", func(t *testing.T) {
		g := NewWithT(t)
		root, err := filepath.EvalSymlinks(t.TempDir())
		g.Expect(err).NotTo(HaveOccurred())
		stage := filepath.Join(root, "01-stage")
		g.Expect(os.MkdirAll(filepath.Join(root, "cmd", "workshop"), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(root, "cmd", "workshop", "main.go"), nil, 0o600)).To(Succeed())
		g.Expect(os.Mkdir(stage, 0o700)).To(Succeed())
		t.Setenv(controlplane.AssetsVariable, "")
		t.Chdir(stage)
		_, err = controlplane.FindAssets()
		g.Expect(err).To(MatchError(filepath.Join(root, "bin", "etcd") + " is missing: run `make tools` in " + root))
	})
	t.Run("outside the repository, the folder is in the cache", func(t *testing.T) {
		g := NewWithT(t)
		cache := t.TempDir()
		t.Setenv("WORKSHOP_CACHE", cache)
		t.Setenv(controlplane.AssetsVariable, "")
		t.Chdir(t.TempDir())
		_, err := controlplane.FindAssets()
		g.Expect(err).To(MatchError(And(HavePrefix(cache), ContainSubstring("cmd/controlplane build"))))
	})
}

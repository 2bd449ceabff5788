package planes_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/doks/planes"
	"example.com/operator-workshop/internal/repo"
)

// fakeTools returns a folder with an empty file for each program of a control plane. These tests don't run them.
func fakeTools(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	for _, program := range controlplane.Programs() {
		NewWithT(t).Expect(os.WriteFile(filepath.Join(bin, program), nil, 0o755)).To(Succeed())
	}
	return bin
}

func TestFoldersThatOthersMayHavePreparedAreRefused(t *testing.T) {
	cases := map[string]func(g Gomega, dir string){
		"others can enter it": func(g Gomega, dir string) {
			g.Expect(os.Mkdir(dir, 0o700)).To(Succeed())
			g.Expect(os.Chmod(dir, 0o755)).To(Succeed())
		},
		"it is a link to a folder": func(g Gomega, dir string) {
			g.Expect(os.Mkdir(dir+".real", 0o700)).To(Succeed())
			g.Expect(os.Symlink(dir+".real", dir)).To(Succeed())
		},
		"it belongs to another user": func(g Gomega, dir string) {
			g.Expect(os.Mkdir(dir, 0o700)).To(Succeed())
			g.Expect(os.Chown(dir, 65534, 65534)).To(Succeed())
		},
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			if name == "it belongs to another user" && os.Getuid() != 0 {
				t.Skip("only root can give a folder away")
			}
			g := NewWithT(t)
			cache := t.TempDir()
			dir := filepath.Join(cache, "do-emulator")
			prepare(g, dir)
			refused := MatchError(And(ContainSubstring(dir), ContainSubstring("mode 0700")))
			_, err := planes.Open(dir, fakeTools(t), &output{})
			g.Expect(err).To(refused)

			t.Setenv(repo.CacheVariable, cache)
			_, err = planes.OpenTemporary(fakeTools(t), &output{})
			g.Expect(err).To(refused)
			g.Expect(planes.DeleteLeftovers(t.Context(), fakeTools(t), &output{})).To(refused)
		})
	}
}

func TestLeftoversAreDeletedWithoutFollowingLinks(t *testing.T) {
	g := NewWithT(t)
	cache, documents := t.TempDir(), t.TempDir()
	t.Setenv(repo.CacheVariable, cache)
	precious := filepath.Join(documents, "demo", "thesis")
	g.Expect(os.MkdirAll(filepath.Dir(precious), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(precious, []byte("years"), 0o600)).To(Succeed())

	kwok, err := planes.OpenTemporary(fakeTools(t), &output{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kwok.Dir()).To(HavePrefix(cache), "the folder must be in the cache, not in the temporary folder, where anyone can create files")
	plane := filepath.Join(kwok.Dir(), "demo")
	g.Expect(os.MkdirAll(plane, 0o700)).To(Succeed())
	g.Expect(os.Symlink(documents, filepath.Join(plane, "etcd-1"))).To(Succeed())
	g.Expect(os.Symlink(documents, filepath.Join(kwok.Dir(), "other"))).To(Succeed())

	g.Expect(planes.DeleteLeftovers(t.Context(), fakeTools(t), &output{})).To(Succeed())
	g.Expect(kwok.Dir()).To(BeADirectory(), "a running emulator must keep its folder")
	g.Expect(kwok.Close()).To(Succeed())
	g.Expect(planes.DeleteLeftovers(t.Context(), fakeTools(t), &output{})).To(Succeed())
	g.Expect(kwok.Dir()).NotTo(BeADirectory())
	g.Expect(precious).To(BeAnExistingFile())
}

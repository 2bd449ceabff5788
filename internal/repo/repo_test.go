package repo_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/repo"
)

func write(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind(t *testing.T) {
	g := NewWithT(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	write(t, root, "cmd/workshop/main.go", "01-crd-only/config/crd.yaml")
	found, err := repo.Find(filepath.Join(root, "01-crd-only", "config"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Root).To(Equal(root))

	link := filepath.Join(t.TempDir(), "link")
	g.Expect(os.Symlink(root, link)).To(Succeed())
	found, err = repo.Find(filepath.Join(link, "01-crd-only"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Root).To(Equal(root), "the root must be the same path, even through a symbolic link")

	_, err = repo.Find(t.TempDir())
	g.Expect(err).To(MatchError(ContainSubstring("change into your clone")))
}

func TestStages(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	write(t, root, "docs/10-later.md", "docs/0-operators.md", "docs/1-crd-only.md", "docs/README.md", "docs/benchmarks.md", "01-crd-only/go.mod")
	stages, err := repo.Repo{Root: root}.Stages()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stages).To(HaveLen(3))
	g.Expect(stages[0]).To(Equal(repo.Stage{Number: 0, Name: "0-operators", Chapter: filepath.Join(root, "docs", "0-operators.md")}))
	g.Expect(stages[1].Dir).To(Equal(filepath.Join(root, "01-crd-only")))
	g.Expect(stages[2].Number).To(Equal(10), "stages must be sorted by number, not by name")
}

func TestStage(t *testing.T) {
	root := t.TempDir()
	write(t, root, "docs/0-operators.md", "docs/1-crd-only.md")
	for _, spelling := range []string{"1", "01", "stage-1"} {
		t.Run(spelling, func(t *testing.T) {
			g := NewWithT(t)
			stage, err := repo.Repo{Root: root}.Stage(spelling)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(stage.Number).To(Equal(1))
		})
	}
	for _, wrong := range []string{"7", "", "one", "stage-", "-1"} {
		t.Run("refuses "+wrong, func(t *testing.T) {
			g := NewWithT(t)
			_, err := repo.Repo{Root: root}.Stage(wrong)
			g.Expect(err).To(MatchError(ContainSubstring("choose one of 0, 1")))
		})
	}
}

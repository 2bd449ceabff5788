package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/repo"
)

// TestCheckBuildsMissingTools uses a checkout that has no bin/, and whose only tool is small.
func TestCheckBuildsMissingTools(t *testing.T) {
	g := NewWithT(t)
	t.Setenv(repo.CacheVariable, t.TempDir())
	own := toyCopy(g, t)
	tools := filepath.Join(own.Root, "tools")
	g.Expect(os.MkdirAll(tools, 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(tools, "go.mod"), []byte("module example.com/little\n\ngo 1.26.0\n\ntool example.com/little\n"), 0o644)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(tools, "go.sum"), nil, 0o644)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(tools, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o644)).To(Succeed())
	shown := &screen{}
	cmd := &cobra.Command{}
	cmd.SetOut(shown)
	cmd.SetContext(t.Context())
	a := &app{repo: repo.Repo{Root: own.Root}}
	g.Expect(a.exercise(cmd, own.Stage.Stage, "check", "", false)).To(MatchError(errNotDone))
	g.Expect(filepath.Join(own.Root, "bin", "little")).To(BeAnExistingFile())
	g.Expect(shown.all()).To(ContainSubstring("Step 1.1, 1 of 3"))
}

func TestRestorePutsBackADeletedFile(t *testing.T) {
	g := NewWithT(t)
	own := toyCopy(g, t)
	g.Expect(os.Remove(filepath.Join(own.Path, "toy.go"))).To(Succeed())
	shown := &screen{}
	a := &app{repo: repo.Repo{Root: own.Root}}
	g.Expect(a.check(t.Context(), shown, own, "")).To(MatchError(errNotDone))
	g.Expect(shown.all()).To(ContainSubstring("  missing toy.go\n          `make stage-1 restore` puts back what is missing"))
	g.Expect(restore(shown, own, "")).To(Succeed())
	g.Expect(filepath.Join(own.Path, "toy.go")).To(BeARegularFile())
	g.Expect(shown.all()).To(ContainSubstring("Restored work/01-toy/toy.go."))
	g.Expect(restore(shown, own, "1.1")).To(MatchError(ContainSubstring("takes no STEP")))
}

func TestCheckSaysHowToPlayASectionThatIsDone(t *testing.T) {
	g := NewWithT(t)
	own := toyCopy(g, t)
	a := &app{repo: repo.Repo{Root: own.Root}}
	solve := func(step string) string {
		_, _, err := own.Solve(step)
		g.Expect(err).NotTo(HaveOccurred())
		shown := &screen{}
		g.Expect(a.check(t.Context(), shown, own, "")).To(MatchError(errNotDone))
		return shown.all()
	}
	g.Expect(solve("1.1")).To(ContainSubstring("`make stage-1 check PLAY=1` also plays the chapter up to section 1.1 with your copy"))
	g.Expect(solve("1.2a")).NotTo(ContainSubstring("PLAY=1"), "a section of which one step is not done must not be offered")
}

package bench

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/repo"
)

// checkout makes a repository in which stage 2 can be measured, and stage 1 can't.
func checkout(t *testing.T) repo.Repo {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"docs/0-a.md", "docs/1-b.md", "docs/2-c.md", "01-b/go.mod", "02-c/go.mod", "02-c/config/bench/load.yaml"} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return repo.Repo{Root: root}
}

func TestParseResources(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ParseResources("100, 500,1000")).To(Equal([]int{100, 500, 1000}))
}

func TestCheckLoad(t *testing.T) {
	for name, test := range map[string]struct {
		load   LoadOptions
		wanted string
	}{
		"all stages":                   {load: LoadOptions{Resources: "100,500", Idle: time.Second}},
		"one stage":                    {load: LoadOptions{Stage: "2", Resources: "1", Idle: time.Second}},
		"no number":                    {load: LoadOptions{Resources: "", Idle: time.Second}, wanted: "--resources=: give positive numbers"},
		"a word instead of a number":   {load: LoadOptions{Resources: "100,many", Idle: time.Second}, wanted: "--resources=100,many: give positive numbers"},
		"no resources at all":          {load: LoadOptions{Resources: "0", Idle: time.Second}, wanted: "--resources=0: give positive numbers"},
		"no idle time":                 {load: LoadOptions{Resources: "1"}, wanted: "--idle=0s: give a positive duration"},
		"a stage that does not exist":  {load: LoadOptions{Stage: "9", Resources: "1", Idle: time.Second}, wanted: `there is no stage "9"`},
		"a stage without a controller": {load: LoadOptions{Stage: "1", Resources: "1", Idle: time.Second}, wanted: "stage 1 has no config/bench/load.yaml, so its load can't be measured; the stages that have one: 2"},
		"a stage without a module":     {load: LoadOptions{Stage: "0", Resources: "1", Idle: time.Second}, wanted: "stage 0 has no config/bench/load.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Bench{Repo: checkout(t)}.CheckLoad(test.load)
			if test.wanted == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.wanted)))
		})
	}
}

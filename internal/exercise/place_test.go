package exercise

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestASyntaxErrorKeepsTheProgress(t *testing.T) {
	for name, test := range map[string]struct {
		old, replacement string
		// solved lists the steps that are done.
		solved []string
		step   string
		open   string
	}{
		"in a step that is done":            {old: "a + b }", replacement: "a + }", solved: []string{"1.1"}, step: "1.1", open: "work/01-toy/toy.go:5"},
		"in the step that is next":          {old: `"hello"`, replacement: `"hello`, solved: []string{"1.1", "1.2a"}, step: "1.2b", open: "work/01-toy/toy.go:11"},
		"when all are done":                 {old: `"hello %s", name)`, replacement: `"hello %s" name)`, solved: []string{"1.1", "1.2a", "1.2b"}, step: "1.2b", open: "work/01-toy/toy.go:11"},
		"with a brace missing above":        {old: "a + b }", replacement: "a + b", solved: []string{"1.1"}, step: "1.1", open: "work/01-toy/toy.go:8"},
		"in code that belongs to no step":   {old: "// add adds.", replacement: "const = 1", solved: []string{"1.1"}, step: "1.2a", open: "work/01-toy/toy.go:4"},
		"in a file that belongs to no step": {solved: []string{"1.1"}, step: "1.2a", open: "work/01-toy/extra.go:3"},
	} {
		t.Run(name, func(t *testing.T) {
			stage := newToy(t)
			stage.Steps[0].Make = []string{"generate"}
			made := 0
			own := stage.Copy(func(string, ...string) error { made++; return nil })
			if err := own.Start(); err != nil {
				t.Fatal(err)
			}
			for _, id := range test.solved {
				if _, _, err := own.Solve(id); err != nil {
					t.Fatal(err)
				}
			}
			own.check(t)
			before, err := own.Done()
			if err != nil {
				t.Fatal(err)
			}
			if test.old == "" {
				if err := os.WriteFile(filepath.Join(own.Path, "extra.go"), []byte("package toy\n\nfunc extra( {\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			} else {
				own.edit(t, "toy.go", test.old, test.replacement)
			}
			made = 0
			_, finding := own.check(t)
			if finding == nil || !strings.Contains(finding.Found, "syntax error") || finding.Step.ID != test.step || finding.Open != test.open {
				t.Errorf("expected step %s at %s\nfound %+v", test.step, test.open, finding)
			}
			if after, err := own.Done(); err != nil || !slices.Equal(after, before) {
				t.Errorf("expected the steps %v to stay done\nfound %v, error %v", before, after, err)
			}
			if made > 0 {
				t.Error("generators ran in spite of the syntax error")
			}
		})
	}
}

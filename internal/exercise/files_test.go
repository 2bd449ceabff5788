package exercise

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestACopyBuildsItsImageFromTheCheckout looks only at the files, because docker may be missing.
func TestACopyBuildsItsImageFromTheCheckout(t *testing.T) {
	for _, stage := range realStages(t) {
		t.Run(stage.Name, func(t *testing.T) {
			finished, err := stage.Form(len(stage.Steps))
			if err != nil {
				t.Fatal(err)
			}
			dockerfile, found := finished["Dockerfile"]
			if !found {
				t.Skip("the stage has no image")
			}
			makefile := string(finished["Makefile"].content)
			for _, context := range []string{"-t $(IMG) ../..\n", "-f - ../..;"} {
				if !strings.Contains(makefile, context) {
					t.Errorf("the copy's Makefile doesn't use the checkout as the context of docker: expected %q", context)
				}
			}
			copies := 0
			for line := range strings.Lines(string(dockerfile.content)) {
				words := strings.Fields(line)
				if len(words) < 3 || words[0] != "COPY" || strings.HasPrefix(words[1], "--from") {
					continue
				}
				for _, source := range words[1 : len(words)-1] {
					copies++
					if own, found := strings.CutPrefix(source, workFolder+"/"+filepath.Base(stage.Dir)+"/"); found {
						if !finished.has(own) {
							t.Errorf("%s: the copy has no %s", strings.TrimSpace(line), own)
						}
					} else if _, err := os.Stat(filepath.Join(stage.Root, source)); err != nil || strings.HasPrefix(source, "0") {
						t.Errorf("%s: %s is from another stage, or missing, error %v", strings.TrimSpace(line), source, err)
					}
				}
			}
			if copies < 4 {
				t.Errorf("found only %d sources in the Dockerfile", copies)
			}
		})
	}
}

// has reports whether the tree has a file or folder that matches the pattern.
func (t tree) has(pattern string) bool {
	for name := range t {
		for ; name != "."; name = path.Dir(name) {
			if matches, err := path.Match(pattern, name); err == nil && matches {
				return true
			}
		}
	}
	return false
}

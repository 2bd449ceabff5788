package exercise

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAMissingFileIsNamedAndPutBack deletes a file that came with a step, and one that is not Go code.
func TestAMissingFileIsNamedAndPutBack(t *testing.T) {
	stage := newToy(t)
	if err := os.WriteFile(filepath.Join(stage.Dir, "sample.yaml"), []byte("a: b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	own := stage.Copy(noMake)
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	own.edit(t, "toy.go", addStub, "\treturn a + b // mine\n")
	_, finding := own.check(t) // gives later.go
	if finding == nil || finding.Step.ID != "1.2a" || len(finding.Missing) > 0 {
		t.Fatalf("expected a finding for step 1.2a, without missing files\nfound %+v", finding)
	}
	own.edit(t, "toy.go", "// greet", "var _ = twice\n\n// greet")
	for _, name := range []string{"later.go", "sample.yaml"} {
		if err := os.Remove(filepath.Join(own.Path, name)); err != nil {
			t.Fatal(err)
		}
	}
	_, finding = own.check(t)
	if finding == nil || !finding.Unbuilt || !slices.Equal(finding.Missing, []string{"later.go", "sample.yaml"}) {
		t.Fatalf("with the files deleted, expected both to be named\nfound %+v", finding)
	}
	if back, err := own.Restore(); err != nil || !slices.Equal(back, []string{"later.go", "sample.yaml"}) {
		t.Fatalf("expected both files to be put back\nfound %v, error %v", back, err)
	}
	if toy := own.read(t, "toy.go"); !strings.Contains(toy, "// mine") {
		t.Errorf("another file was changed:\n%s", toy)
	}
	if back, err := own.Restore(); err != nil || len(back) > 0 {
		t.Errorf("nothing was missing, but restore put back %v, error %v", back, err)
	}
	if _, finding = own.check(t); finding == nil || finding.Unbuilt || len(finding.Missing) > 0 {
		t.Errorf("with the files put back, expected none to be missing\nfound %+v", finding)
	}
}

// TestARenamedFileDoesNotCountAsMissing moves a learner's code to another file.
func TestARenamedFileDoesNotCountAsMissing(t *testing.T) {
	own := started(t)
	if err := os.Rename(filepath.Join(own.Path, "toy.go"), filepath.Join(own.Path, "mine.go")); err != nil {
		t.Fatal(err)
	}
	if _, finding := own.check(t); finding == nil || finding.Unbuilt || len(finding.Missing) > 0 {
		t.Errorf("expected code that compiles, without missing files\nfound %+v", finding)
	}
}

package exercise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSolveAndReset(t *testing.T) {
	own := started(t)
	own.edit(t, "toy.go", addStub, "\treturn a - b // almost\n")
	own.edit(t, "toy.go", "// Package toy is small.", "// Package toy is mine.")
	files, kept, err := own.Solve("1.1")
	if err != nil || strings.Join(files, " ") != "later.go toy.go" {
		t.Fatalf("expected solve to change later.go and toy.go\nfound %v, error %v", files, err)
	}
	toy := own.read(t, "toy.go")
	for _, wanted := range []string{"return a + b", "Package toy is mine", "Your turn, step 1.2a"} {
		if !strings.Contains(toy, wanted) {
			t.Errorf("%q is missing after solve:\n%s", wanted, toy)
		}
	}
	old, err := os.ReadFile(filepath.Join(own.Root, kept, "toy.go"))
	if err != nil || !strings.Contains(string(old), "// almost") {
		t.Errorf("the learner's old file is not in %s, error %v", kept, err)
	}
	if files, _, err := own.Solve("1.1"); err != nil || len(files) > 0 {
		t.Errorf("the step was solved already, but solve changed %v, error %v", files, err)
	}
	for _, id := range []string{"1.2a", "1.2b"} {
		if _, _, err := own.Solve(id); err != nil {
			t.Fatal(err)
		}
	}
	if _, finding := own.check(t); finding != nil {
		t.Fatalf("all steps are solved, but the check found %+v", finding)
	}
	if _, _, err := own.Undo("1.2b"); err != nil {
		t.Fatal(err)
	}
	if _, finding := own.check(t); finding == nil || finding.Step.ID != "1.2b" {
		t.Fatalf("step 1.2b was undone, so expected the check to find it\nfound %+v", finding)
	}
	if _, err := own.Reset(); err != nil {
		t.Fatal(err)
	}
	if _, finding := own.check(t); finding == nil || finding.Step.ID != "1.1" {
		t.Fatalf("the copy was reset, so expected the check to find step 1.1\nfound %+v", finding)
	}
}

func TestSolveRunsTheGenerators(t *testing.T) {
	stage := newToy(t)
	stage.Steps[0].Make = []string{"generate", "manifests"}
	var made string
	own := stage.Copy(func(dir string, targets ...string) error {
		made = dir + " " + strings.Join(targets, " ")
		return nil
	})
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := own.Solve("1.1"); err != nil || made != own.Path+" generate manifests" {
		t.Fatalf("expected solve to make generate and manifests in the copy\nfound %q, error %v", made, err)
	}
	made = ""
	if _, _, err := own.Solve("1.1"); err != nil || made != "" {
		t.Fatalf("nothing was changed, but solve made %q, error %v", made, err)
	}
	if _, _, err := own.Undo("1.1"); err != nil {
		t.Fatal(err)
	}
	own.Make = noMake
	files, kept, err := own.Solve("1.1")
	if err == nil || !strings.Contains(err.Error(), "nothing is made here") || len(files) == 0 || !strings.Contains(err.Error(), kept) {
		t.Errorf("expected an error that names the folder with the old files\nfound error %[3]v, with the files %[1]v in %[2]q", files, kept, err)
	}
}

func TestSolveReplacesAFileThatDoesNotParse(t *testing.T) {
	own := started(t)
	own.edit(t, "toy.go", "func add", "fnuc add")
	if _, kept, err := own.Solve("1.1"); err != nil || kept == "" {
		t.Fatalf("expected a folder with the old files\nfound %q, error %v", kept, err)
	}
	if toy := own.read(t, "toy.go"); !strings.Contains(toy, "return a + b") {
		t.Errorf("expected the solution\nfound:\n%s", toy)
	}
}

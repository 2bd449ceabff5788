package exercise

import (
	"os"
	"path/filepath"
	"testing"
)

// A test may have a form for each step, and learners still write none.
func TestTheTestsAreNoWorkOfAStep(t *testing.T) {
	stage := newToy(t)
	marked := "package toy\n\n//workshop:step 1.1\nfunc helper() int { return 1 }\n"
	if err := os.WriteFile(filepath.Join(stage.Dir, "helper_test.go"), []byte(marked), 0o644); err != nil {
		t.Fatal(err)
	}
	changed, err := stage.declarationsOf(0)
	if _, found := changed["helper_test.go"]; err != nil || found || len(changed["toy.go"]) == 0 {
		t.Errorf("step 1.1 changes %v: %v", changed, err)
	}
}

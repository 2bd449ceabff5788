package exercise

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newerCourse changes a stage's tests, loads the stage again, and returns the learner's copy of it.
func (c *Copy) newerCourse(t *testing.T, change func(stage *Stage)) *Copy {
	t.Helper()
	change(c.Stage)
	return toyAt(t, c.Root).Copy(noMake)
}

func reword(t *testing.T) func(*Stage) {
	return func(stage *Stage) { stage.editTests(t, "expected %d, found", "one and one is %d, not") }
}

// rename returns a change that gives the file with the stage's tests another name.
func rename(t *testing.T) func(*Stage) {
	return func(stage *Stage) {
		if err := os.Rename(filepath.Join(stage.Dir, "toy_test.go"), filepath.Join(stage.Dir, "sum_test.go")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestANewerCourseReplacesTests(t *testing.T) {
	own := started(t).newerCourse(t, reword(t))
	if _, finding := own.check(t); finding == nil || !strings.Contains(finding.Found, "one and one is 2, not 0") {
		t.Fatalf("expected the message of the newer course's test\nfound %+v", finding)
	}
	if tests := own.read(t, "toy_test.go"); !strings.Contains(tests, "one and one") {
		t.Errorf("the command that repeats the check runs the tests of the older course:\n%s", tests)
	}
}

func TestANewerCourseKeepsTestsThatALearnerHasChanged(t *testing.T) {
	own := started(t)
	own.edit(t, "toy_test.go", "package toy\n", "package toy // mine\n")
	own = own.newerCourse(t, reword(t))
	if _, finding := own.check(t); finding == nil || !strings.Contains(finding.Found, "one and one is 2, not 0") {
		t.Fatalf("expected the message of the newer course's test\nfound %+v", finding)
	}
	if tests := own.read(t, "toy_test.go"); !strings.Contains(tests, "// mine") {
		t.Errorf("tests that the learner has changed are overwritten:\n%s", tests)
	}
}

func TestANewerCourseRenamesTests(t *testing.T) {
	own := started(t).newerCourse(t, rename(t))
	if _, finding := own.check(t); finding == nil || finding.Unbuilt {
		t.Fatalf("expected a finding from tests that compile\nfound %+v", finding)
	}
	own.read(t, "sum_test.go")
	if _, err := os.Stat(filepath.Join(own.Path, "toy_test.go")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the test of the older course must be gone: error %v", err)
	}
}

func TestANewerCourseRenamesTestsThatALearnerHasChanged(t *testing.T) {
	own := started(t)
	own.edit(t, "toy_test.go", "package toy\n", "package toy // mine\n")
	own = own.newerCourse(t, rename(t))
	if _, finding := own.check(t); finding == nil || finding.Unbuilt {
		t.Fatalf("expected a finding from tests that compile\nfound %+v", finding)
	}
	if tests := own.read(t, "toy_test.go"); !strings.Contains(tests, "// mine") {
		t.Errorf("tests that the learner has changed are overwritten:\n%s", tests)
	}
}

// TestACopyOfAnOlderVersionGetsNewTests uses a copy without hashes, so its tests are compared with the course's forms.
func TestACopyOfAnOlderVersionGetsNewTests(t *testing.T) {
	own := started(t)
	if err := os.Remove(own.givenFile()); err != nil {
		t.Fatal(err)
	}
	own.edit(t, "toy.go", addStub, "\treturn a + b\n")
	own.edit(t, "toy.go", greetStub, "\treturn \"hello\"\n")
	if passed, _ := own.check(t); passed != "1.1, 1.2a" {
		t.Fatalf("expected both solved steps to pass\nfound %q", passed)
	}
	if !strings.Contains(own.read(t, "toy_test.go"), "a name") {
		t.Error("the tests of the next step are not there to read")
	}
}

// TestTestsOfASolutionAreReplacedLater solves all steps, which also writes their tests.
func TestTestsOfASolutionAreReplacedLater(t *testing.T) {
	own := started(t)
	for _, step := range own.Steps {
		if _, _, err := own.Solve(step.ID); err != nil {
			t.Fatal(err)
		}
	}
	own = own.newerCourse(t, reword(t))
	if _, finding := own.check(t); finding != nil {
		t.Fatalf("all steps are solved, but the check found %+v", finding)
	}
	if tests := own.read(t, "toy_test.go"); !strings.Contains(tests, "one and one") {
		t.Errorf("the tests of the older course are left:\n%s", tests)
	}
}

package exercise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRanAsText(t *testing.T) {
	for wanted, ran := range map[string]Ran{
		"1 test":                              {Tests: 1},
		"2 specs on a control plane":          {Specs: 2},
		"3 tests, 1 spec on a control plane":  {Tests: 3, Specs: 1},
		"1 test, 10 specs on a control plane": {Tests: 1, Specs: 10},
	} {
		if ran.String() != wanted {
			t.Errorf("%+v is %q, not %q", ran, ran, wanted)
		}
	}
}

func TestALearnerSolvesTheSteps(t *testing.T) {
	own := started(t)
	passed, finding := own.check(t)
	if passed != "" || finding == nil || finding.Step.ID != "1.1" || finding.Open != "work/01-toy/toy.go:6" ||
		!strings.Contains(finding.Found, "TestAdd/one:") || !strings.Contains(finding.Found, "expected 2, found 0") {
		t.Fatalf("before the first step, expected the check to find step 1.1\nfound %q passed, and %+v", passed, finding)
	}
	if _, err := os.Stat(filepath.Join(own.Path, "later.go")); err == nil {
		t.Error("a file that comes with a later step is there from the start")
	}
	if strings.Contains(own.read(t, "toy_test.go"), "a name") {
		t.Error("a test of a later step is there from the start")
	}
	own.edit(t, "toy.go", addStub, "\treturn b + a\n")
	own.edit(t, "toy.go", greetStub, "\treturn \"hello\"\n")
	passed, finding = own.check(t)
	if passed != "1.1, 1.2a" || finding == nil || finding.Step.ID != "1.2b" {
		t.Fatalf("after two steps, expected both to pass and the check to find step 1.2b\nfound %q passed, and %+v", passed, finding)
	}
	own.read(t, "later.go")
	if !strings.Contains(own.read(t, "toy_test.go"), "a name") {
		t.Error("the tests of the next step are not there to read")
	}
	own.edit(t, "toy.go", `"hello"`, `"hello " + name`)
	if passed, finding = own.check(t); passed != "1.2b, 1.1 again, 1.2a again, 1.2b again" || finding != nil {
		t.Fatalf("at the end, expected the last step to pass, and then all steps again\nfound %q passed, and %+v", passed, finding)
	}
	own.edit(t, "toy.go", "b + a", "b - a")
	if passed, finding = own.check(t); finding == nil || finding.Step.ID != "1.1" {
		t.Fatalf("after step 1.1 was broken again, expected the check to find it\nfound %q passed, and %+v", passed, finding)
	}
	if done, err := own.Done(); err != nil || strings.Join(done, " ") != "1.2a 1.2b" {
		t.Errorf("expected only the broken step to be removed from the progress\nfound %v, error %v", done, err)
	}
}

// TestChecksOfEarlierStepsAcceptLaterCode uses a test that expects one greeting before the last step, and another one after
// it.
func TestChecksOfEarlierStepsAcceptLaterCode(t *testing.T) {
	stage := newToy(t)
	original := *stage.Copy(noMake)
	original.Path = stage.Dir
	original.edit(t, "toy_test.go", `if got := greet("you"); !strings.HasPrefix(got, "hello") {`, `wanted := strings.TrimSpace("hello")
	//workshop:step 1.2b
	wanted = "hello you"
	if got := greet("you"); got != wanted {`)
	own := stage.Copy(noMake)
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{"1.1", "1.2a", "1.2b, 1.1 again, 1.2a again, 1.2b again"} {
		if _, _, err := own.Solve(strings.Split(wanted, ",")[0]); err != nil {
			t.Fatal(err)
		}
		if passed, finding := own.check(t); passed != wanted {
			t.Fatalf("expected %q to pass\nfound %q, and %+v", wanted, passed, finding)
		}
	}
	if finding, err := own.Check(t.Context(), "1.2a", func(Step, Ran, bool) {}); finding != nil || err != nil {
		t.Errorf("expected a step before the last to pass\nfound %+v, error %v", finding, err)
	}
}

func TestTestsThatALearnerHasChangedAreKept(t *testing.T) {
	own := started(t)
	own.edit(t, "toy.go", addStub, "\treturn a + b\n")
	own.edit(t, "toy.go", greetStub, "\treturn \"hello\"\n")
	own.edit(t, "toy_test.go", "add(1, 1)", "add(1, 1+0)")
	if passed, _ := own.check(t); passed != "1.1, 1.2a" {
		t.Fatalf("expected both solved steps to pass\nfound %q", passed)
	}
	if tests := own.read(t, "toy_test.go"); !strings.Contains(tests, "1+0") || strings.Contains(tests, "a name") {
		t.Errorf("tests that the learner has changed are overwritten:\n%s", tests)
	}
}

func TestFindingsSayWhatIsWrongAndWhere(t *testing.T) {
	for name, test := range map[string]struct {
		spoil      func(*Copy)
		open, text string
	}{
		"a compile error in the code of a step that is not next": {
			spoil: func(own *Copy) {
				own.edit(t, "toy.go", addStub, "\treturn a + b\n")
				own.edit(t, "toy.go", greetStub, "\treturn nonsense\n")
			},
			open: "work/01-toy/toy.go:11", text: "undefined: nonsense",
		},
		"a syntax error":              {spoil: func(own *Copy) { own.edit(t, "toy.go", addStub, "\treturn (\n") }, open: "work/01-toy/toy.go:7", text: "syntax error"},
		"a function that was renamed": {spoil: func(own *Copy) { own.edit(t, "toy.go", "func add(", "func plus(") }, text: "undefined: add"},
		"an import that can't be found": {spoil: func(own *Copy) {
			own.edit(t, "toy.go", "package toy\n", "package toy\n\nimport _ \"example.com/absent\"\n")
		}, text: "example.com/absent"},
		"a panic": {spoil: func(own *Copy) { own.edit(t, "toy.go", addStub, "\tpanic(\"oh\")\n") }, open: "work/01-toy/toy.go:6", text: "panic: oh"},
		"an exit": {spoil: func(own *Copy) {
			own.edit(t, "toy.go", addStub, "\tos.Exit(0)\n\treturn 0\n")
			own.edit(t, "toy.go", "package toy\n", "package toy\n\nimport \"os\"\n")
		}, text: "os.Exit(0)"},
		"tests changed so that they pass": {
			spoil: func(own *Copy) { own.edit(t, "toy_test.go", "got != sum", "got == sum") }, text: "expected 2, found 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			own := started(t)
			test.spoil(own)
			_, finding := own.check(t)
			if finding == nil || !strings.Contains(finding.Found, test.text) || !strings.HasPrefix(finding.Open, test.open) || finding.Step.ID != "1.1" {
				t.Fatalf("expected %q at %q, in step 1.1\nfound %+v", test.text, test.open, finding)
			}
		})
	}
}

package exercise

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

func TestSolvingBySection(t *testing.T) {
	own := newToy(t).Copy(noMake)
	var played []string
	err := own.SolveBySection(func(solved, next string) error {
		played = append(played, solved+" before "+next)
		if strings.Contains(own.read(t, "toy.go"), greetStub) != (solved == "1.1") {
			t.Errorf("with section %s solved, greet must be a stub only if that is 1.1:\n%s", solved, own.read(t, "toy.go"))
		}
		return nil
	})
	if err != nil || strings.Join(played, ", ") != "1.1 before 1.2, 1.2 before " {
		t.Errorf("expected both sections to be played, one after the other\nfound %q, error %v", played, err)
	}
	if _, err := os.Stat(own.Path); err == nil {
		t.Error("the copy was not removed")
	}
	theirs := started(t)
	if err := theirs.SolveBySection(func(string, string) error { return nil }); err == nil {
		t.Error("expected an error, because the learner's copy already exists")
	}
	theirs.read(t, "toy.go")
}

func TestVerifyOnlySomeSteps(t *testing.T) {
	stage := newToy(t)
	stage.Steps[0].Checks[0].Run = "TestAbsent"
	var made, steps []string
	stage.Steps[0].Make = []string{"manifests"}
	run := func(_ string, targets ...string) error { made = append(made, targets...); return nil }
	report := func(step Step, _, _ time.Duration, _ string) { steps = append(steps, step.ID) }
	if err := stage.Verify(t.Context(), []string{"1.2b"}, false, run, report); err != nil || strings.Join(steps, " ") != "1.2b" {
		t.Errorf("expected only step 1.2b to be verified\nfound %v, error %v", steps, err)
	}
	if !slices.Contains(made, "manifests") {
		t.Errorf("made %v; expected the targets of the steps that were only solved", made)
	}
	if err := stage.Verify(t.Context(), []string{"1.9"}, false, noMake, report); err == nil || err.Error() != `stage 1 has no step "1.9": choose from 1.1, 1.2a, 1.2b` {
		t.Errorf("expected an error for a step that does not exist\nfound %v", err)
	}
}

func TestVerifyPartsAtTheSameTime(t *testing.T) {
	stage := newToy(t)
	parts := [][]string{{"1.1"}, {"1.2a", "1.2b"}}
	verified := make([]string, len(parts))
	var running errgroup.Group
	for i, part := range parts {
		running.Go(func() error {
			return stage.Verify(t.Context(), part, false, noMake, func(step Step, _, _ time.Duration, _ string) { verified[i] += " " + step.ID })
		})
	}
	if err := running.Wait(); err != nil || strings.Join(verified, ",") != " 1.1, 1.2a 1.2b" {
		t.Errorf("expected both parts to be verified\nfound %q, error %v", verified, err)
	}
	if err := RemoveVerified(stage.Root); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(stage.Root, ".verify*")); err != nil || len(left) > 0 {
		t.Errorf("expected no copies to be left\nfound %q, error %v", left, err)
	}
}

func TestVerify(t *testing.T) {
	stage := newToy(t)
	var steps []string
	report := func(step Step, _, _ time.Duration, _ string) { steps = append(steps, step.ID) }
	if err := stage.Verify(t.Context(), nil, false, noMake, report); err != nil || len(steps) != 3 {
		t.Fatalf("expected all three steps to be verified\nfound %v, error %v", steps, err)
	}
	lenient := newToy(t)
	lenient.Steps[1].Checks[0].Run = "TestAdd"
	if err := lenient.Verify(t.Context(), nil, false, noMake, report); err == nil || !strings.Contains(err.Error(), "step 1.2a, before it is solved: its check passes") {
		t.Errorf("expected an error for a step without a check of its own\nfound %v", err)
	}
	absent := newToy(t)
	absent.Steps[0].Checks[0].Run = "TestAbsent"
	if err := absent.Verify(t.Context(), nil, false, noMake, report); err == nil || !strings.Contains(err.Error(), "no test ran") {
		t.Errorf("expected an error for a check without a test\nfound %v", err)
	}
	renamed := newToy(t)
	renamed.Steps[0].Checks[0].Run = "^TestAdd$/^(one|another)$"
	if err := renamed.Verify(t.Context(), nil, false, noMake, report); err == nil || !strings.Contains(err.Error(), "step 1.1, solved: no test that ran matches") || !strings.Contains(err.Error(), "another") {
		t.Errorf("expected an error for a check that names a test that does not exist\nfound %v", err)
	}
	panicking := newToy(t)
	panicking.editTests(t, `t.Errorf("expected %d, found %d", sum, got)`, `panic("one is not one")`)
	if err := panicking.Verify(t.Context(), nil, false, noMake, report); err == nil || !strings.Contains(err.Error(), "step 1.1, before it is solved: a test panics instead of saying what is missing: TestAdd/one:\npanic: one is not one") {
		t.Errorf("expected an error for a test that panics\nfound %v", err)
	}
	flawed := newToy(t)
	if err := os.MkdirAll(filepath.Join(flawed.Dir, "cmd"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(flawed.Dir, "cmd", "main.go"), []byte("package main\n\nfunc main() {\n\t//workshop:until 1.2a missing()\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := flawed.Verify(t.Context(), nil, false, noMake, report)
	if wanted := "step 1.1, solved: the program does not compile: cmd/main.go:4"; err == nil || !strings.Contains(err.Error(), wanted) {
		t.Errorf("expected %q\nfound %v", wanted, err)
	}
	for old, test := range map[string]struct{ replacement, wanted string }{
		"TestAdd/one:":                  {"TestAdd/two:", `step 1.1, before it is solved: the chapter shows that "TestAdd/two" fails, but it doesn't`},
		"a greeting, [..]":              {"a greeting", "step 1.2a, before it is solved: the chapter doesn't show what the check finds:\nTestGreet:"},
		`found "hello"`:                 {"found \"hello\"\n          also: TestGreet", `step 1.2b, before it is solved: the chapter shows that "TestGreet" also fails`},
		"```text\n$ make stage-1 check": {"```text\n$ make stage-2 check", "step 1.1: show above its box"},
	} {
		stale := newToy(t)
		stale.editChapter(t, old, test.replacement)
		if err := stale.Verify(t.Context(), nil, false, noMake, report); err == nil || !strings.Contains(err.Error(), test.wanted) {
			t.Errorf("expected an error for a chapter with %q instead of %q\nfound %v", test.replacement, old, err)
		}
	}
}

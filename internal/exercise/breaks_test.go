package exercise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/internal/repo"
)

// finished returns a copy with all steps done.
func finished(t *testing.T) *Copy {
	t.Helper()
	own := started(t)
	for _, step := range own.Steps {
		if _, _, err := own.Solve(step.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, finding := own.check(t); finding != nil {
		t.Fatalf("all steps are solved, but the check found %+v", finding)
	}
	return own
}

// expectBroken expects that the copy has a break and that the original file is kept, and returns what the check finds.
func (c *Copy) expectBroken(t *testing.T) *Finding {
	t.Helper()
	broken, kept, err := c.Broken()
	if err != nil || broken == nil {
		t.Fatalf("expected a break in the copy\nfound none, error %v", err)
	}
	if _, err := os.Stat(filepath.Join(kept, broken.File)); err != nil {
		t.Errorf("the original file is not kept: %v", err)
	}
	finding, err := c.CheckBreak(t.Context(), *broken)
	if err != nil {
		t.Fatal(err)
	}
	return finding
}

func TestBreakAndFixByHand(t *testing.T) {
	own := finished(t)
	// The learner wrote the function differently, so the break replaces all of it.
	own.edit(t, "toy.go", "{ return a + b }", "{\n\tsum := b\n\tsum += a\n\treturn sum\n}")
	if _, err := own.Break(t.Context(), "sum"); err != nil {
		t.Fatal(err)
	}
	finding := own.expectBroken(t)
	if finding == nil || !strings.Contains(finding.Found, "expected 2, found 0") || finding.Open != "" {
		t.Fatalf("expected the failure of the broken function, and no place to open\nfound %+v", finding)
	}
	if _, err := own.Break(t.Context(), "sum"); err == nil || !strings.Contains(err.Error(), "work/01-toy already has a bug to find: look for it with `make stage-1 check`") {
		t.Errorf("expected an error about the bug that is already there\nfound %v", err)
	}
	own.edit(t, "toy.go", "a - b", "b + a")
	if finding := own.expectBroken(t); finding != nil {
		t.Fatalf("the bug is fixed, but the check found %+v", finding)
	}
	if broken, _, err := own.Broken(); broken != nil || err != nil {
		t.Errorf("still broken: %v, %v", broken, err)
	}
	if next, err := own.Next(); err != nil || next != len(own.Steps) {
		t.Errorf("expected no step to be left\nfound step %d, error %v", next, err)
	}
}

func TestUnbreakRestoresTheFile(t *testing.T) {
	own := finished(t)
	own.edit(t, "toy.go", "// Package toy is small.", "// Package toy is mine.")
	before := own.read(t, "toy.go")
	if _, err := own.Break(t.Context(), "sum"); err != nil {
		t.Fatal(err)
	}
	if spoiled := own.read(t, "toy.go"); !strings.Contains(spoiled, "is mine") {
		t.Errorf("the break changed more than the text to replace:\n%s", spoiled)
	}
	own.edit(t, "toy.go", "a - b", "a - b // hm")
	name, kept, err := own.Unbreak()
	if err != nil || name != "toy.go" || own.read(t, "toy.go") != before {
		t.Fatalf("expected toy.go to be restored\nfound that %q was, error %v:\n%s", name, err, own.read(t, "toy.go"))
	}
	tried, err := os.ReadFile(filepath.Join(own.Root, kept, "toy.go"))
	if err != nil || !strings.Contains(string(tried), "// hm") {
		t.Errorf("what the learner tried is not kept, error %v", err)
	}
	if _, _, err := own.Unbreak(); err == nil || !strings.Contains(err.Error(), "is not broken") {
		t.Errorf("expected an error because the copy is no longer broken\nfound %v", err)
	}
}

func TestRefusedBreaksChangeNothing(t *testing.T) {
	own := finished(t)
	before := own.read(t, "toy.go")
	for name, message := range map[string]string{
		"nothing":  `stage 1 has no break "nothing": choose from sum, compiler`,
		"compiler": "your toy.go differs too much from the solution",
	} {
		if _, err := own.Break(t.Context(), name); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("expected an error with %q\nfound %v", message, err)
		}
	}
	if own.read(t, "toy.go") != before {
		t.Error("a break that was refused has changed the file")
	}
	if _, _, err := own.Undo("1.2b"); err != nil {
		t.Fatal(err)
	}
	if _, err := own.Break(t.Context(), "sum"); err == nil || !strings.Contains(err.Error(), "run `make stage-1 check`") {
		t.Errorf("expected an error for an unfinished copy\nfound %v", err)
	}
}

func TestVerifyBreaks(t *testing.T) {
	stage := newToy(t)
	var seen []string
	err := stage.VerifyBreaks(t.Context(), noMake, func(broken Break, _ time.Duration, _ string) { seen = append(seen, broken.Name) })
	if err == nil || !strings.Contains(err.Error(), "break compiler: its check fails because the program does not compile") || strings.Join(seen, " ") != "sum" {
		t.Errorf("expected only sum to be verified, and an error about compiler\nfound %v verified, error %v", seen, err)
	}
	stage.Breaks = stage.Breaks[:1]
	stage.Breaks[0].New = "b + a"
	if err := stage.VerifyBreaks(t.Context(), noMake, func(Break, time.Duration, string) {}); err == nil || !strings.Contains(err.Error(), "break sum: its check passes") {
		t.Errorf("expected an error for a break that breaks nothing\nfound %v", err)
	}
	stage.Breaks[0].Old = "return"
	if err := stage.VerifyBreaks(t.Context(), noMake, func(Break, time.Duration, string) {}); err == nil || !strings.Contains(err.Error(), "occurs 2 times") {
		t.Errorf("expected an error for a break whose old text is ambiguous\nfound %v", err)
	}
}

// TestVerifyBreaksOfTwoStages checks that the stages don't share a folder, because `make verify-exercises BREAKS=1`
// verifies them at the same time.
func TestVerifyBreaksOfTwoStages(t *testing.T) {
	first := newToy(t)
	first.Breaks = first.Breaks[:1]
	dir := filepath.Join(first.Root, "02-toy")
	if err := os.CopyFS(dir, os.DirFS(first.Dir)); err != nil {
		t.Fatal(err)
	}
	second, err := Load(repo.Repo{Root: first.Root}, repo.Stage{Number: 2, Name: "2-toy", Dir: dir, Chapter: first.Chapter})
	if err != nil {
		t.Fatal(err)
	}
	second.Breaks = second.Breaks[:1]
	err = first.VerifyBreaks(t.Context(), noMake, func(Break, time.Duration, string) {
		copies, err := filepath.Glob(filepath.Join(first.Root, verifyFolder+"*", "01-toy"))
		if err != nil || len(copies) != 1 {
			t.Fatalf("expected the first stage's copy\nfound %v, error %v", copies, err)
		}
		if err := second.VerifyBreaks(t.Context(), noMake, func(Break, time.Duration, string) {}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(copies[0]); err != nil {
			t.Errorf("verifying the second stage has removed the first one's copy: %v", err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

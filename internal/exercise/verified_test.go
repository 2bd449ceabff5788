package exercise

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/internal/repo"
)

func TestTheFingerprintChangesWithItsInputs(t *testing.T) {
	t.Setenv(repo.CacheVariable, t.TempDir())
	stage := newToy(t)
	for _, folder := range []string{"internal/exercise", "tools"} {
		if err := os.MkdirAll(filepath.Join(stage.Root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fingerprint := func() string {
		t.Helper()
		now, err := stage.Fingerprint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	verified := func(fingerprint string) bool {
		t.Helper()
		found, err := stage.Verified(fingerprint)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	last := fingerprint()
	if verified(last) {
		t.Error("verified before it was noted")
	}
	if err := stage.NoteVerified(last); err != nil || !verified(last) {
		t.Errorf("not verified after it was noted, error %v", err)
	}
	for name, counts := range map[string]bool{"01-toy/extra.go": true, "01-toy/exercises.yaml": true, "tools/go.mod": true, "docs/1-toy.md": false} {
		if counts {
			if err := os.WriteFile(filepath.Join(stage.Root, name), []byte("package toy\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		} else {
			stage.editChapter(t, "# The toy", "# A toy")
		}
		now := fingerprint()
		if changed := now != last; changed != counts || verified(now) == counts {
			t.Errorf("%s: expected changed=%t, verified=%t\nfound changed=%t, verified=%t", name, counts, !counts, changed, verified(now))
		}
		last = now
		if err := stage.NoteVerified(last); err != nil {
			t.Fatal(err)
		}
	}
	stage.editChapter(t, "found 0", "found nothing")
	if fingerprint() == last {
		t.Error("the chapter shows a check differently, but the fingerprint is the same")
	}
}

// TestVerifyRepeatsOnlyStepsWhoseInputsChanged changes the inputs of the toy's steps one after another.
func TestVerifyRepeatsOnlyStepsWhoseInputsChanged(t *testing.T) {
	t.Setenv(repo.CacheVariable, t.TempDir())
	root := newToy(t).Root
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("tools/go.mod", "module tools\n")
	write("internal/exercise/doc.go", "package exercise\n")
	verify := func() (string, error) {
		t.Helper()
		if err := RemoveVerified(root); err != nil {
			t.Fatal(err)
		}
		var steps []string
		err := toyAt(t, root).Verify(t.Context(), nil, true, noMake, func(step Step, _, _ time.Duration, _ string) { steps = append(steps, step.ID) })
		return strings.Join(steps, " "), err
	}
	edit := func(name, old, replacement string) func() {
		return func() { editFile(t, filepath.Join(root, name), old, replacement) }
	}
	const all = "1.1 1.2a 1.2b"
	for _, test := range []struct {
		what   string
		change func()
		want   string
	}{
		{"everything is new", func() {}, all},
		{"nothing has changed", func() {}, ""},
		{"the code of the last step", edit("01-toy/toy.go", `"hello %s"`, `"hello"+" %s"`), "1.2b"},
		{"an earlier form", edit("01-toy/toy.go", `fmt.Sprint("hello")`, `fmt.Sprint("hello", "")`), "1.2a 1.2b"},
		{"the code of the first step", edit("01-toy/toy.go", "a + b", "b + a"), all},
		{"a test", edit("01-toy/toy_test.go", `"one": 2`, `"one": 2, "two": 2`), all},
		{"what the chapter shows", edit("docs/1-toy.md", "expected a greeting, [..]", "expected a [..]"), "1.2a"},
		{"a check", edit("01-toy/exercises.yaml", "{run: TestGreet}", "{run: ^TestGreet$}"), "1.2a"},
		{"a hint", edit("01-toy/exercises.yaml", "Use Sprintf.", "Use fmt.Sprintf."), ""},
		{"a comment in the code of the checks", func() { write("internal/exercise/doc.go", "// Package exercise is here.\npackage exercise\n") }, ""},
		{"a directive", func() { write("internal/exercise/doc.go", "//go:build linux\n\npackage exercise\n") }, all},
		{"the code of the checks", func() { write("internal/exercise/doc.go", "package exercise\n\nvar one = 1\n") }, all},
		{"a test of the checks", func() { write("internal/exercise/doc_test.go", "package exercise\n") }, ""},
		{"a tool", func() { write("tools/go.mod", "module tools\n\ngo 1.26.0\n") }, all},
		{"the module's requirements", func() { write("go.sum", "\n") }, all},
	} {
		test.change()
		if steps, err := verify(); err != nil || steps != test.want {
			t.Errorf("%s: verified %q, expected %q, error %v", test.what, steps, test.want, err)
		}
	}
	edit("docs/1-toy.md", `found "hello"`, "found nothing")()
	for range 2 {
		if steps, err := verify(); err == nil || steps != "1.2b" {
			t.Errorf("a step that failed must be verified again each time: verified %q, error %v", steps, err)
		}
	}
}

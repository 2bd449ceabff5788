package exercise

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBoxesNameTheFilesToWrite(t *testing.T) {
	stage := newToy(t)
	tests := filepath.Join(stage.Dir, "toy_test.go")
	content, err := os.ReadFile(tests)
	if err != nil {
		t.Fatal(err)
	}
	marked := strings.Replace(string(content), "func TestName", "// TestName needs greet as it is at the end.\n//\n//workshop:step 1.2b\nfunc TestName", 1)
	if err := os.WriteFile(tests, []byte(marked), 0o644); err != nil {
		t.Fatal(err)
	}
	chapter, err := os.ReadFile(stage.Chapter)
	if err != nil {
		t.Fatal(err)
	}
	filled, err := stage.FillBoxes(string(chapter))
	if err != nil {
		t.Fatal(err)
	}
	wanted := "> **Your turn, step 1.2b: Say it to someone** (1 minutes). Let greet name the one it greets. Work in `toy.go`, then run\n> `make stage-1 check`.\n"
	if !strings.Contains(filled, wanted) {
		t.Errorf("the box should name what the learner writes, and no test:\n%s", filled)
	}
	stage.editChapter(t, "$ make stage-1 check", "$ make stage-1 test")
	if chapter, err = os.ReadFile(stage.Chapter); err != nil {
		t.Fatal(err)
	}
	if _, err := stage.FillBoxes(string(chapter)); err == nil || !strings.Contains(err.Error(), "step 1.1: show above its box") {
		t.Errorf("expected an error for a chapter that doesn't show the check of a step\nfound %v", err)
	}
}

func TestWrappedKeepsWordsAndCode(t *testing.T) {
	task := strings.Repeat("long ", 30) + "line.\nIt says `a name and\nits value`.\n"
	wrapped := Wrapped(task)
	for line := range strings.Lines(wrapped) {
		if len(strings.TrimSpace(line)) > lineLength {
			t.Errorf("this line has %d characters, which is too long: %s", len(line), line)
		}
	}
	if !strings.Contains(wrapped, "`a name and its value`.") {
		t.Errorf("code should stay on one line:\n%s", wrapped)
	}
	if found, want := strings.Fields(wrapped), strings.Fields(task); !slices.Equal(found, want) {
		t.Errorf("the words should stay:\nfound  %q\nwanted %q", found, want)
	}
}

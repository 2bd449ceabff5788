package exercise

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"example.com/operator-workshop/internal/repo"
)

// newToy returns a small stage with three steps in a checkout of its own.
func newToy(t *testing.T) *Stage {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/toy.txtar")
	if err != nil {
		t.Fatal(err)
	}
	// The path contains a space, because a learner's checkout may be in such a folder.
	root := filepath.Join(t.TempDir(), "a checkout")
	for _, file := range archive.Files {
		path := filepath.Join(root, file.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, file.Data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return toyAt(t, root)
}

func toyAt(t *testing.T, root string) *Stage {
	t.Helper()
	stage, err := Load(repo.Repo{Root: root}, repo.Stage{Number: 1, Name: "1-toy", Dir: filepath.Join(root, "01-toy"), Chapter: filepath.Join(root, "docs", "1-toy.md")})
	if err != nil {
		t.Fatal(err)
	}
	return stage
}

func noMake(string, ...string) error { return errors.New("nothing is made here") }

// started returns a new copy of the toy stage, in the state in which a learner begins.
func started(t *testing.T) *Copy {
	t.Helper()
	own := newToy(t).Copy(noMake)
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	return own
}

func (c *Copy) read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(c.Path, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// edit replaces text in a file of the copy, as a learner would.
func (c *Copy) edit(t *testing.T, name, old, replacement string) {
	t.Helper()
	content := c.read(t, name)
	if !strings.Contains(content, old) {
		t.Fatalf("%s has no %q:\n%s", name, old, content)
	}
	if err := os.WriteFile(filepath.Join(c.Path, name), []byte(strings.Replace(content, old, replacement, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// check runs the check, and returns the steps that passed and the finding.
func (c *Copy) check(t *testing.T) (string, *Finding) {
	t.Helper()
	var passed []string
	finding, err := c.Check(t.Context(), "", func(step Step, ran Ran, again bool) {
		if ran.Tests == 0 {
			t.Errorf("step %s passed without a test", step.ID)
		}
		if again {
			step.ID += " again"
		}
		passed = append(passed, step.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(passed, ", "), finding
}

const (
	addStub   = "\t// Your turn, step 1.1: Add two numbers.\n\treturn 0\n"
	greetStub = "\t// Your turn, step 1.2a: Say hello.\n\treturn \"\"\n"
)

// editChapter replaces the first occurrence of a string in the chapter, and editTests does so in the stage's tests.
func (s *Stage) editChapter(t *testing.T, old, replacement string) {
	t.Helper()
	editFile(t, s.Chapter, old, replacement)
}

func (s *Stage) editTests(t *testing.T, old, replacement string) {
	t.Helper()
	editFile(t, filepath.Join(s.Dir, "toy_test.go"), old, replacement)
}

func editFile(t *testing.T, path, old, replacement string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, replacement, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

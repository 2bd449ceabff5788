// Package snippet fills the code fences of a Markdown page from the Go, YAML and other files that they show.
package snippet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"example.com/operator-workshop/internal/chapter"
	"example.com/operator-workshop/internal/exercise"
	"example.com/operator-workshop/internal/exercise/form"
	"example.com/operator-workshop/internal/repo"
)

// diffLines is how many lines of the page, and how many of the source, Check shows for a stale snippet before it counts
// the rest.
const diffLines = 8

// Fill fills the fences with file= in the Markdown file at path from the source files under root. It reports whether it
// changed the Markdown file. If any fence can't be filled, Fill changes nothing.
func Fill(root, path string) (changed bool, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return false, fmt.Errorf("read chapter: %w", err)
	}
	parsed, err := chapter.Parse(path, text)
	if err != nil {
		return false, err
	}
	var filled strings.Builder
	var errs []error
	copied := 0
	for _, each := range parsed.Snippets {
		want, err := cut(root, each)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", path, each.Line, err))
			continue
		}
		filled.Write(text[copied:each.Start])
		newline := "\n"
		if strings.HasSuffix(filled.String(), "\r\n") {
			newline = "\r\n"
		}
		for _, line := range want {
			if line != "" {
				filled.WriteString(each.Indent + line)
			}
			filled.WriteString(newline)
		}
		copied = each.End
	}
	filled.Write(text[copied:])
	if len(errs) > 0 || filled.String() == string(text) {
		return false, errors.Join(errs...)
	}
	if err := os.WriteFile(path, []byte(filled.String()), 0o644); err != nil {
		return false, fmt.Errorf("write chapter: %w", err)
	}
	return true, nil
}

// Check fails if Fill would fail or would change the Markdown file at path. The error shows how each stale fence
// differs from its source.
func Check(root, path string) error {
	parsed, err := chapter.Load(path)
	if err != nil {
		return err
	}
	var errs []error
	for _, each := range parsed.Snippets {
		want, err := cut(root, each)
		if err == nil && !slices.Equal(each.Body, want) {
			err = fmt.Errorf("this is not what %s says; run `make generate`\n%s", source(each), diff(each.Body, want))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", path, each.Line, err))
		}
	}
	return errors.Join(errs...)
}

// source says where the snippet comes from.
func source(s chapter.Snippet) string {
	if part := s.Symbol + s.Key; part != "" {
		return s.File + " at " + part
	}
	return s.File
}

// cut returns the lines that the snippet must contain.
func cut(root string, s chapter.Snippet) ([]string, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(s.File)))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("file=%s: there is no such file", s.File)
	}
	if err != nil {
		return nil, fmt.Errorf("file=%s: %w", s.File, err)
	}
	checkout := repo.Repo{Root: root}
	// The marks in the code are for the exercises: leave them out, because readers of the page don't need them.
	var before []byte
	switch {
	case s.Diff:
		if before, err = exercise.FileBefore(checkout, s.File, s.Step, source); err != nil {
			break
		}
		fallthrough
	case s.Step != "":
		source, err = exercise.FileAfter(checkout, s.File, s.Step, source)
	default:
		source, err = form.Finished(s.File, source)
	}
	if err != nil {
		return nil, fmt.Errorf("file=%s: %w", s.File, err)
	}
	text, err := part(s, source)
	if err == nil && s.Diff {
		text, err = changes(s, before, text)
	}
	if err != nil {
		return nil, fmt.Errorf("file=%s: %w", s.File, err)
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if slices.ContainsFunc(lines, s.ClosedBy) {
		return nil, fmt.Errorf("file=%s: a line of it would close this fence: make the fence longer than %s", s.File, s.Mark)
	}
	return lines, nil
}

func part(s chapter.Snippet, source []byte) (string, error) {
	switch {
	case s.Symbol != "":
		return cutSymbol(source, s.Symbol)
	case s.Key != "":
		return cutKey(source, s.Key)
	}
	return strings.TrimRight(string(source), "\r\n"), nil
}

// contextLines is how many unchanged lines are shown around each change.
const contextLines = 3

// changes returns the lines that a step adds to and removes from the part of the file that the snippet shows, as a
// unified diff without a heading. A part that does not exist before the step counts as added. It is an error if the
// step changes nothing in this part.
func changes(s chapter.Snippet, before []byte, after string) (string, error) {
	old, err := part(s, before)
	var missing errMissing
	if errors.As(err, &missing) || len(before) == 0 {
		old, err = "", nil
	}
	if err != nil {
		return "", err
	}
	if old == after {
		return "", fmt.Errorf("step %s does not change %s", s.Step, source(s))
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: lines(old), B: lines(after), Context: contextLines})
	if err != nil {
		return "", fmt.Errorf("compare: %w", err)
	}
	hunks := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var shown []string
	for i, line := range hunks {
		switch {
		case !strings.HasPrefix(line, "@@"):
			shown = append(shown, strings.TrimRight(line, " "))
		case i > 0:
			shown = append(shown, "@@")
		}
	}
	return strings.Join(shown, "\n"), nil
}

// lines splits a string without a trailing newline into lines. Each of them, even the last, gets a newline. An empty
// string has no lines.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return slices.Collect(strings.Lines(text + "\n"))
}

// errMissing says which symbol or key a file lacks.
type errMissing string

func (e errMissing) Error() string { return "has no " + string(e) }

// diff shows the difference between the page (-) and the source (+), without the equal lines around it.
func diff(old, updated []string) string {
	for len(old) > 0 && len(updated) > 0 && old[0] == updated[0] {
		old, updated = old[1:], updated[1:]
	}
	for len(old) > 0 && len(updated) > 0 && old[len(old)-1] == updated[len(updated)-1] {
		old, updated = old[:len(old)-1], updated[:len(updated)-1]
	}
	return strings.Join(append(signed("-", old), signed("+", updated)...), "\n")
}

// signed puts a sign before each line, and shortens a long list.
func signed(sign string, lines []string) []string {
	var marked []string
	for i, line := range lines {
		if left := len(lines) - i; i >= diffLines && left > 1 {
			return append(marked, fmt.Sprintf("    %s (%d more lines)", sign, left))
		}
		marked = append(marked, strings.TrimRight("    "+sign+" "+line, " \t"))
	}
	return marked
}

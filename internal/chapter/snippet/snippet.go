// Package snippet fills the code fences of a chapter from the Go, YAML and other files that they show.
package snippet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/operator-workshop/internal/chapter"
	"example.com/operator-workshop/internal/exercise"
	"example.com/operator-workshop/internal/exercise/form"
	"example.com/operator-workshop/internal/repo"
)

// diffLines bounds how many lines of a stale snippet Check shows for each side.
const diffLines = 8

// Fill rewrites the fences with file= of the Markdown file at path from the sources under root. It tells whether the
// file was changed; with an error, it was not.
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

// Check fails when Fill would change the Markdown file at path, and tells for each fence how it differs.
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

// source names where the snippet is from.
func source(s chapter.Snippet) string {
	if part := s.Symbol + s.Key; part != "" {
		return s.File + " at " + part
	}
	return s.File
}

// cut returns the lines that the snippet must have.
func cut(root string, s chapter.Snippet) ([]string, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(s.File)))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("file=%s: there is no such file", s.File)
	}
	// What the exercises know by marks in the code is not what a reader of the chapter looks for.
	switch {
	case err != nil:
	case s.Step != "":
		source, err = exercise.FileAfter(repo.Repo{Root: root}, s.File, s.Step, source)
	default:
		source, err = form.Finished(s.File, source)
	}
	text := strings.TrimRight(string(source), "\r\n")
	switch {
	case err != nil:
	case s.Symbol != "":
		text, err = cutSymbol(source, s.Symbol)
	case s.Key != "":
		text, err = cutKey(source, s.Key)
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

// diff shows what differs between what is written (-) and what the source says (+), without the equal lines around it.
func diff(old, updated []string) string {
	for len(old) > 0 && len(updated) > 0 && old[0] == updated[0] {
		old, updated = old[1:], updated[1:]
	}
	for len(old) > 0 && len(updated) > 0 && old[len(old)-1] == updated[len(updated)-1] {
		old, updated = old[:len(old)-1], updated[:len(updated)-1]
	}
	return strings.Join(append(signed("-", old), signed("+", updated)...), "\n")
}

// signed marks lines with a sign and leaves most of a long list out.
func signed(sign string, lines []string) []string {
	var marked []string
	for i, line := range lines {
		if left := len(lines) - i; i >= diffLines && left > 1 {
			return append(marked, fmt.Sprintf("    %s (%d lines more)", sign, left))
		}
		marked = append(marked, strings.TrimRight("    "+sign+" "+line, " \t"))
	}
	return marked
}

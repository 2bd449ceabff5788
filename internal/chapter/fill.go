package chapter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	chapter, err := Parse(path, text)
	if err != nil {
		return false, err
	}
	problems := &problemList{path: path}
	lines := splitLines(string(text))
	// From the last to the first, so that the line numbers of those to come stay right.
	for _, snippet := range slices.Backward(chapter.Snippets) {
		want, err := snippet.cut(root)
		if err != nil {
			problems.add(snippet.Line, "%v", err)
			continue
		}
		lines = slices.Replace(lines, snippet.Line, snippet.Line+len(snippet.fence.body), snippet.indented(want)...)
	}
	if err := problems.err(); err != nil {
		return false, err
	}
	newline := "\n"
	if strings.Contains(string(text), "\r\n") {
		newline = "\r\n"
	}
	filled := strings.Join(lines, newline)
	if strings.HasSuffix(string(text), "\n") {
		filled += newline
	}
	if filled == string(text) {
		return false, nil
	}
	if err := os.WriteFile(path, []byte(filled), 0o644); err != nil {
		return false, fmt.Errorf("write chapter: %w", err)
	}
	return true, nil
}

// Check fails when Fill would change the Markdown file at path, and tells for each fence how it differs.
func Check(root, path string) error {
	chapter, err := Load(path)
	if err != nil {
		return err
	}
	problems := &problemList{path: path}
	for _, snippet := range chapter.Snippets {
		want, err := snippet.cut(root)
		if err != nil {
			problems.add(snippet.Line, "%v", err)
			continue
		}
		if !slices.Equal(snippet.fence.body, want) {
			problems.add(snippet.Line, "this is not what %s says; run `make generate`\n%s", snippet.source(), diff(snippet.fence.body, want))
		}
	}
	return problems.err()
}

// source names where the snippet is from.
func (s Snippet) source() string {
	if part := s.Symbol + s.Key; part != "" {
		return s.File + " at " + part
	}
	return s.File
}

// cut returns the lines that the snippet must have.
func (s Snippet) cut(root string) ([]string, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(s.File)))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("file=%s: there is no such file", s.File)
	}
	if err != nil {
		return nil, fmt.Errorf("file=%s: %w", s.File, err)
	}
	text := strings.TrimRight(string(source), "\r\n")
	switch {
	case s.Symbol != "":
		text, err = cutSymbol(source, s.Symbol)
	case s.Key != "":
		text, err = cutKey(source, s.Key)
	}
	if err != nil {
		return nil, fmt.Errorf("file=%s: %w", s.File, err)
	}
	lines := splitLines(text + "\n")
	if slices.ContainsFunc(lines, s.fence.closedBy) {
		return nil, fmt.Errorf("file=%s: a line of it would close this fence: make the fence longer than %s", s.File, s.fence.mark)
	}
	return lines, nil
}

// indented indents lines as the fence is; blank lines stay blank.
func (s Snippet) indented(lines []string) []string {
	indent := strings.Repeat(" ", s.fence.indent)
	result := make([]string, len(lines))
	for i, line := range lines {
		if line != "" {
			result[i] = indent + line
		}
	}
	return result
}

// diff shows what differs between what is written (-) and what the source says (+), without the equal lines around it.
func diff(old, updated []string) string {
	for len(old) > 0 && len(updated) > 0 && old[0] == updated[0] {
		old, updated = old[1:], updated[1:]
	}
	for len(old) > 0 && len(updated) > 0 && old[len(old)-1] == updated[len(updated)-1] {
		old, updated = old[:len(old)-1], updated[:len(updated)-1]
	}
	var lines []string
	for _, side := range []struct {
		sign  string
		lines []string
	}{{"-", old}, {"+", updated}} {
		for i, line := range side.lines {
			if i == diffLines {
				lines = append(lines, fmt.Sprintf("    %s (%s more)", side.sign, plural(len(side.lines)-i, "line")))
				break
			}
			lines = append(lines, strings.TrimRight("    "+side.sign+" "+line, " \t"))
		}
	}
	return strings.Join(lines, "\n")
}

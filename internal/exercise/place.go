package exercise

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// compilerLine matches a compiler message with a file and a line.
var compilerLine = regexp.MustCompile(`(?m)^\s*(?:vet: )?(\S+\.go):(\d+):(?:\d+:)? .*$`)

// compilerLines returns up to ten of the compiler's messages, without go's headings, or all of the output if it
// contains no such message.
func compilerLines(output string) string {
	var lines []string
	for _, match := range compilerLine.FindAllString(output, 10) {
		lines = append(lines, strings.TrimSpace(match))
	}
	if len(lines) == 0 {
		return strings.TrimSpace(output)
	}
	return strings.Join(lines, "\n")
}

// stepOfError returns the step and the place of the first compile error outside the tests. If there is no such error,
// the place is "". In that case, and if the error belongs to no step, it returns the given step.
func (c *Copy) stepOfError(checked Step, output string) (Step, string) {
	for _, match := range compilerLine.FindAllStringSubmatch(output, -1) {
		path := filepath.Join(c.Path, match[1])
		line, err := strconv.Atoi(match[2])
		if err != nil || isTest(path) {
			continue
		}
		place := c.relative(path) + ":" + match[2]
		name, err := filepath.Rel(c.Path, path)
		if err != nil {
			return checked, place
		}
		if step, err := c.stepAt(filepath.ToSlash(name), line); err == nil && step != nil {
			return *step, place
		}
		return checked, place
	}
	return checked, ""
}

// syntaxError returns a finding if a Go file that a learner writes can't be parsed and the program doesn't compile.
// Otherwise, it returns nil. The finding's step is the one that the line of the error belongs to or, if there is
// none, the first step that is not done, or the last step if all are done.
func (c *Copy) syntaxError(ctx context.Context) (*Finding, error) {
	parsed := true
	inFolder := func(string) error { return nil }
	err := c.written(inFolder, func(path string) error {
		if filepath.Ext(path) == ".go" {
			_, broken := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			parsed = parsed && broken == nil
		}
		return nil
	})
	if err != nil || parsed {
		return nil, err
	}
	// Use the compiler's message, because learners can search for it, and the compiler knows which files belong to the
	// program.
	message, err := c.build(ctx)
	if err != nil || message == "" {
		return nil, err
	}
	next, err := c.Next()
	if err != nil {
		return nil, err
	}
	finding := &Finding{Found: "it does not compile:\n" + message, Command: "go build ./...", Unbuilt: true}
	finding.Step, finding.Open = c.stepOfError(c.Steps[min(next, len(c.Steps)-1)], message)
	return finding, nil
}

// stepAt finds the declaration on a line of one of the copy's files. Of the steps up to and including the first that is
// not done, it returns the last that changes this declaration, or nil if there is none.
func (c *Copy) stepAt(name string, line int) (*Step, error) {
	theirs, err := os.ReadFile(filepath.Join(c.Path, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	declared := declaredAt(theirs, line)
	if declared == "" {
		return nil, nil
	}
	next, err := c.Next()
	if err != nil {
		return nil, err
	}
	for i := min(next, len(c.Steps)-1); i >= 0; i-- {
		names, err := c.declarationsOf(i)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names[name], declared) {
			return &c.Steps[i], nil
		}
	}
	return nil, nil
}

// declaredAt returns the name of the declaration on a line of a Go file, or "" if there is none.
func declaredAt(source []byte, line int) string {
	present, err := declarations(source)
	if err != nil {
		return declaredInBroken(source, line)
	}
	for _, declared := range present {
		first := 1 + strings.Count(string(source[:declared.start]), "\n")
		if first <= line && line <= first+strings.Count(declared.text, "\n") {
			return declared.name
		}
	}
	return ""
}

// declaredInBroken returns the name of the declaration on a line of a file that can't be parsed, or "" if it is
// unknown. If a declaration lacks its closing brace, the error is often on the first line of the declaration below it.
func declaredInBroken(source []byte, line int) string {
	lines := strings.SplitAfter(string(source), "\n")
	through := min(line, len(lines))
	if _, err := declarations([]byte(strings.Join(lines[:through-1], ""))); err != nil {
		through--
	}
	name := ""
	for _, text := range lines[:through] {
		text += "\n"
		if !unicode.IsLetter(rune(text[0])) {
			continue // a comment, or a line inside a declaration
		}
		name = ""
		// With an empty body, the first line of a function or a struct type usually parses.
		for _, whole := range []string{text, text[:max(0, strings.LastIndex(text, "{"))] + "{}"} {
			if begun, err := declarations([]byte("package p\n" + whole)); err == nil && len(begun) == 1 {
				name = begun[0].name
			}
		}
	}
	return name
}

// declarationsOf returns the names of the declarations that a step changes, by file. It leaves out tests and other
// files that learners need not write. A file that is not Go code has one empty name.
func (s *Stage) declarationsOf(at int) (map[string][]string, error) {
	before, err := s.Form(at)
	if err != nil {
		return nil, err
	}
	after, err := s.Form(at + 1)
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, name := range differing(before, after) {
		if after[name].given || isTest(name) {
			continue
		}
		if filepath.Ext(name) != ".go" {
			found[name] = []string{""}
			continue
		}
		if found[name], err = changedDeclarations(before[name].content, after[name].content); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// open returns where to start on a step: at the comment that names the step, or else in a file that is not there yet,
// or else at the first declaration that the step changes, or else in a file that it changes, without a line.
func (c *Copy) open(step Step) (string, error) {
	at, err := c.index(step.ID)
	if err != nil {
		return "", err
	}
	changed, err := c.declarationsOf(at)
	if err != nil {
		return "", err
	}
	turn := regexp.MustCompile(`(Your turn, step |Step )` + regexp.QuoteMeta(step.ID) + `:`)
	fallback := ""
	for _, name := range slices.SortedFunc(maps.Keys(changed), goFirst) {
		path := filepath.Join(c.Path, filepath.FromSlash(name))
		content, err := os.ReadFile(path)
		if err != nil {
			fallback = c.relative(path) + " (not there yet)"
			continue
		}
		if found := turn.FindIndex(content); found != nil {
			return fmt.Sprintf("%s:%d", c.relative(path), 1+strings.Count(string(content[:found[0]]), "\n")), nil
		}
		if fallback == "" {
			fallback = c.relative(path)
			if present, err := byName(content); err == nil && len(changed[name]) > 0 {
				if declared, found := present[changed[name][0]]; found {
					fallback += fmt.Sprintf(":%d", 1+strings.Count(string(content[:declared.start]), "\n"))
				}
			}
		}
	}
	return fallback, nil
}

// goFirst sorts Go files before others, which may be generated from them.
func goFirst(a, b string) int {
	if isGo := filepath.Ext(a) == ".go"; isGo != (filepath.Ext(b) == ".go") {
		if isGo {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}

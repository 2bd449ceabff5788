package exercise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Finding says why a step is not done.
type Finding struct {
	// Step is the step that is not done. A compile error may belong to a step other than the one that was checked.
	Step Step
	// Found is what the check found, in one or more lines.
	Found string
	// Open is the file and line to work on, relative to the checkout's root; empty if unknown.
	Open string
	// Command repeats the check in the copy's folder; empty if nothing was run.
	Command string
	// Unbuilt means that the program or its tests do not compile, Early that the tests ended before they could report a result.
	Unbuilt, Early bool
}

// Check checks the steps that are not done yet, in order. It calls passed for each that passes, and returns what it found at the
// first that does not. When all are done, it checks all of them once more. If only is not empty, it checks that step alone.
func (c *Copy) Check(ctx context.Context, only string, passed func(step Step, again bool)) (*Finding, error) {
	if only != "" {
		return c.checkSteps(ctx, []string{only}, false, passed)
	}
	if err := c.Exists(); err != nil {
		return nil, err
	}
	done, err := c.Done()
	if err != nil {
		return nil, err
	}
	var all, left []string
	for _, step := range c.Steps {
		all = append(all, step.ID)
		if !slices.Contains(done, step.ID) {
			left = append(left, step.ID)
		}
	}
	if finding, err := c.checkSteps(ctx, left, false, passed); finding != nil || err != nil {
		return finding, err
	}
	return c.checkSteps(ctx, all, true, passed)
}

func (c *Copy) checkSteps(ctx context.Context, ids []string, again bool, passed func(step Step, again bool)) (*Finding, error) {
	for _, id := range ids {
		finding, err := c.CheckStep(ctx, id)
		if err != nil {
			return nil, err
		}
		step, err := c.Step(id)
		if err != nil {
			return nil, err
		}
		if finding != nil {
			return finding, c.forget(id)
		}
		passed(step, again)
		if err := errors.Join(c.give(step), c.note(step)); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// give adds the files that learners get with a step and need not write. It does not overwrite any.
func (c *Copy) give(step Step) error {
	_, before, after, err := c.around(step.ID)
	if err != nil {
		return err
	}
	files := tree{}
	for name, file := range after {
		_, was := before[name]
		if _, err := os.Lstat(filepath.Join(c.Path, filepath.FromSlash(name))); file.given && !was && errors.Is(err, os.ErrNotExist) {
			files[name] = file
		}
	}
	if err := files.write(c.Path); err != nil {
		return fmt.Errorf("write what comes with step %s: %w", step.ID, err)
	}
	return nil
}

// CheckStep runs the checks of a step. It returns nil if the step is done.
func (c *Copy) CheckStep(ctx context.Context, id string) (*Finding, error) {
	if err := c.Exists(); err != nil {
		return nil, err
	}
	at, err := c.index(id)
	if err != nil {
		return nil, err
	}
	step := c.Steps[at]
	if len(step.Make) > 0 {
		if err := c.Make(c.Path, step.Make...); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			open, opening := c.open(step)
			return &Finding{Step: step, Found: err.Error(), Open: open, Command: "make " + strings.Join(step.Make, " ")}, opening
		}
	}
	overlay, err := c.writeOverlay(at + 1)
	if err != nil {
		return nil, err
	}
	for _, check := range step.Checks {
		found, err := c.goTest(ctx, check, overlay)
		if err != nil {
			return nil, err
		}
		if finding := c.judge(step, found); finding != nil {
			if finding.Open == "" {
				finding.Open, err = c.open(step)
			}
			return finding, err
		}
	}
	return nil, nil
}

// judge returns why the run shows that the step is not done, nil if it succeeded.
func (c *Copy) judge(step Step, found outcome) *Finding {
	finding := &Finding{Step: step, Command: found.command}
	switch {
	case !found.built:
		finding.Unbuilt = true
		finding.Found = "it does not compile:\n" + compilerLines(found.output)
		finding.Step, finding.Open = c.stepOfError(step, found.output)
	case len(found.failures) > 0:
		var all []string
		for i, failure := range found.failures {
			if i == 0 {
				all = append(all, failure.name+":\n"+failure.message)
			} else {
				all = append(all, "also: "+failure.name)
			}
		}
		finding.Found = strings.Join(all, "\n")
		if hang := c.hang(found.output); hang != "" && !found.reported {
			finding.Early = true
			finding.Found, finding.Open = "it does not end, or it panics: see "+hang+"\n"+firstLines(finding.Found, 12), hang
		}
	case found.err != nil:
		finding.Early = true
		finding.Found = "the tests ended early: " + found.err.Error() + "\n" + strings.TrimSpace(found.output)
		if hang := c.hang(found.output); hang != "" {
			finding.Found, finding.Open = "it does not end, or it panics: see "+hang+"\n"+firstLines(found.output, 12), hang
		}
	case found.tests == 0:
		finding.Found = "no test ran: the check of this step is wrong, please report it"
	default:
		return nil
	}
	return finding
}

func firstLines(text string, most int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[:min(len(lines), most)], "\n")
}

// compilerLine matches a compiler message with a file and a line.
var compilerLine = regexp.MustCompile(`(?m)^\s*(?:vet: )?(\S+\.go):(\d+):(?:\d+:)? .*$`)

// compilerLines returns the compiler's messages without go's headings, at most ten.
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

// stepOfError returns the step and the place of the first compile error outside the tests.
func (c *Copy) stepOfError(checked Step, output string) (Step, string) {
	for _, match := range compilerLine.FindAllStringSubmatch(output, -1) {
		path := filepath.Join(c.Path, match[1])
		line, err := strconv.Atoi(match[2])
		if err != nil || strings.HasSuffix(path, "_test.go") {
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

// stepAt returns the step that the declaration on a line of the copy belongs to: of the steps up to the next one to do, the last
// that changes it. It returns nil if none does.
func (c *Copy) stepAt(name string, line int) (*Step, error) {
	theirs, err := os.ReadFile(filepath.Join(c.Path, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	present, err := declarations(theirs)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(present, func(declared declaration) bool {
		first := 1 + strings.Count(string(theirs[:declared.start]), "\n")
		return first <= line && line <= first+strings.Count(declared.text, "\n")
	})
	if at < 0 {
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
		if slices.Contains(names[name], present[at].name) {
			return &c.Steps[i], nil
		}
	}
	return nil, nil
}

// declarationsOf returns the names of the declarations that a step changes, by file. A file that is not Go has one empty name.
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
		if after[name].given {
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

// open returns where to begin with a step: the comment that names it or, if there is none, what the step changes.
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
	names := make([]string, 0, len(changed))
	for name := range changed {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
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

// frame matches a line of a goroutine's stack.
var frame = regexp.MustCompile(`(?m)^\s+(/.+\.go):(\d+)`)

// hang returns the first place in the learner's code, without tests, in the stacks of a test that timed out or panicked.
func (c *Copy) hang(output string) string {
	if !strings.Contains(output, "goroutine ") {
		return ""
	}
	for _, match := range frame.FindAllStringSubmatch(output, -1) {
		if rest, inside := strings.CutPrefix(match[1], c.Path+"/"); inside && fs.ValidPath(rest) && !strings.HasSuffix(rest, "_test.go") {
			return c.relative(match[1]) + ":" + match[2]
		}
	}
	return ""
}

package exercise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Finding says why a step is not done.
type Finding struct {
	// Step is the step that is not done. A compile error may belong to a step other than the one that was checked.
	Step Step
	// Found is what the check found, in one or more lines.
	Found string
	// Open is the file to work on, relative to the checkout's root, with a line if that is known. It is empty if the place
	// is unknown.
	Open string
	// Command is the command that repeats the part of the check that failed. Run it in the copy's folder.
	Command string
	// Unbuilt means that the program or its tests do not compile. Early means that the tests ended before they could report a
	// result.
	Unbuilt, Early bool
	// Missing lists files that the copy lacks, which may be why the check failed. Restore puts them back.
	Missing  []string
	failures []testFailure
}

// Ran counts what the checks of a step have run: Go tests, and Ginkgo specs, which run on a control plane.
type Ran struct {
	Tests, Specs int
	// unmatched are the alternatives of the checks' patterns that matched no test or spec that ran.
	unmatched []string
}

// String returns a string such as "3 tests, 1 spec on a control plane".
func (r Ran) String() string {
	count := func(n int, noun string) string {
		if n == 1 {
			return "1 " + noun
		}
		return fmt.Sprintf("%d %ss", n, noun)
	}
	switch {
	case r.Specs == 0:
		return count(r.Tests, "test")
	case r.Tests == 0:
		return count(r.Specs, "spec") + " on a control plane"
	}
	return count(r.Tests, "test") + ", " + count(r.Specs, "spec") + " on a control plane"
}

// Check checks the steps that are not done yet, in order. It records each step that passes as done, and calls passed.
// For the first step that fails, it returns a finding and, unless the program does not compile, records that the step
// is not done. When all steps are done, it checks all of them once more. If only is not empty, it checks just the step
// with this ID.
func (c *Copy) Check(ctx context.Context, only string, passed func(step Step, ran Ran, again bool)) (*Finding, error) {
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

func (c *Copy) checkSteps(ctx context.Context, ids []string, again bool, passed func(step Step, ran Ran, again bool)) (*Finding, error) {
	for _, id := range ids {
		if err := c.giveTests(); err != nil {
			return nil, err
		}
		finding, ran, err := c.checkStep(ctx, id)
		if err != nil {
			return nil, err
		}
		step, err := c.Step(id)
		if err != nil {
			return nil, err
		}
		if finding != nil && finding.Unbuilt {
			return finding, nil // a compile error doesn't show that a finished step is wrong
		}
		if finding != nil {
			return finding, c.forget(id)
		}
		passed(step, ran, again)
		if err := errors.Join(c.give(step), c.note(step), c.giveTests()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// give adds the files that learners get with a step and need not write. It overwrites no file.
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

// CheckStep runs the checks of a step. It returns nil if they pass. Unlike Check, it does not change the progress.
func (c *Copy) CheckStep(ctx context.Context, id string) (*Finding, error) {
	finding, _, err := c.checkStep(ctx, id)
	return finding, err
}

func (c *Copy) checkStep(ctx context.Context, id string) (*Finding, Ran, error) {
	finding, ran, err := c.tryStep(ctx, id)
	if finding == nil || err != nil {
		return nil, ran, err
	}
	return finding, ran, c.nameMissing(finding)
}

func (c *Copy) tryStep(ctx context.Context, id string) (*Finding, Ran, error) {
	var ran Ran
	if err := c.Exists(); err != nil {
		return nil, ran, err
	}
	if err := c.use(); err != nil {
		return nil, ran, err
	}
	at, err := c.index(id)
	if err != nil {
		return nil, ran, err
	}
	step := c.Steps[at]
	// A syntax error anywhere would make the generators fail, so look for one before they run.
	if finding, err := c.syntaxError(ctx); finding != nil || err != nil {
		return finding, ran, err
	}
	if len(step.Make) > 0 {
		if err := c.Make(c.Path, step.Make...); err != nil {
			if ctx.Err() != nil {
				return nil, ran, context.Cause(ctx)
			}
			if err := blameMachine(err.Error()); err != nil {
				return nil, ran, err
			}
			open, opening := c.open(step)
			return &Finding{Step: step, Found: err.Error(), Open: open, Command: "make " + strings.Join(step.Make, " ")}, ran, opening
		}
	}
	// The tests as they are after this step may expect later code to be missing. If the learner has done all steps up
	// to a later one, use the tests as they are after that one.
	next, err := c.Next()
	if err != nil {
		return nil, ran, err
	}
	overlay, err := c.writeOverlay(max(at+1, next))
	if err != nil {
		return nil, ran, err
	}
	for _, check := range step.Checks {
		found, err := c.goTest(ctx, check, overlay)
		if err != nil {
			return nil, ran, err
		}
		if finding := c.judge(step, found); finding != nil {
			if finding.Open == "" {
				finding.Open, err = c.open(step)
			}
			return finding, ran, err
		}
		if found.reported {
			ran.Specs += len(found.tests)
		} else {
			ran.Tests += len(found.tests)
		}
		unmatched, err := check.unmatched(found)
		if err != nil {
			return nil, ran, err
		}
		ran.unmatched = append(ran.unmatched, unmatched...)
	}
	return nil, ran, nil
}

// furtherFailures is the maximum number of failed tests that a finding names besides the first.
const furtherFailures = 5

// judge returns a finding that says why the step is not done, or nil if the run succeeded.
func (c *Copy) judge(step Step, found outcome) *Finding {
	finding := &Finding{Step: step, Command: found.command, failures: found.failures}
	switch {
	case !found.built:
		finding.Unbuilt = true
		finding.Found = "it does not compile:\n" + compilerLines(found.output)
		finding.Step, finding.Open = c.stepOfError(step, found.output)
	case len(found.failures) > 0:
		var all []string
		for i, failure := range found.failures {
			switch {
			case i == 0:
				all = append(all, failure.name+":\n"+shorten(failure.message))
			case i <= furtherFailures:
				all = append(all, alsoField+failure.name)
			}
		}
		if more := len(found.failures) - 1 - furtherFailures; more > 0 {
			all = append(all, fmt.Sprintf("and %d more", more))
		}
		finding.Found = strings.Join(all, "\n")
		if place, description := c.ended(found.output); place != "" && !found.reported {
			finding.Early, finding.Open = true, place
			finding.Found = found.failures[0].name + ":\n" + description
		}
		if place, description := c.stuck(found.progress); place != "" {
			finding.Open = place
			finding.Found += "\n" + description
		}
	case found.err != nil:
		finding.Early = true
		finding.Found = "the tests ended early: " + found.err.Error() + "\n" + strings.TrimSpace(found.output)
		if place, description := c.ended(found.output); place != "" {
			finding.Found, finding.Open = description, place
		}
	case len(found.tests) == 0:
		finding.Found = "no test ran: the check of this step is wrong; please report it"
	default:
		return nil
	}
	return finding
}

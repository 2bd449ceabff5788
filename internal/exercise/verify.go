package exercise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// verifyFolder is the prefix of the folders in the checkout's root that contain the copies of Verify and VerifyBreaks.
const verifyFolder = ".verify"

// RemoveVerified removes the copies that earlier runs of Verify and VerifyBreaks have left in a checkout.
func RemoveVerified(root string) error {
	folders, err := filepath.Glob(filepath.Join(root, verifyFolder+"*"))
	for _, folder := range folders {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	if err != nil {
		return fmt.Errorf("remove the copies of the previous run: %w", err)
	}
	return nil
}

// startVerification starts a copy in a folder of its own, so that several may be used at the same time, even of one
// stage. It replaces the copy of an earlier run. It solves the given steps, and runs their make targets once, but not
// their checks.
func (s *Stage) startVerification(name string, solved []Step, makeTargets func(dir string, targets ...string) error) (*Copy, error) {
	tried := s.Copy(makeTargets)
	tried.Path = filepath.Join(s.Root, verifyFolder+"-"+name, filepath.Base(s.Dir))
	if err := os.RemoveAll(tried.work()); err != nil {
		return nil, fmt.Errorf("remove the copy of the previous run: %w", err)
	}
	if err := tried.Start(); err != nil {
		return nil, err
	}
	var targets []string
	for _, step := range solved {
		if err := errors.Join(tried.solveUnkept(step), tried.give(step)); err != nil {
			return nil, err
		}
		for _, target := range step.Make {
			if !slices.Contains(targets, target) {
				targets = append(targets, target)
			}
		}
	}
	if len(targets) == 0 {
		return tried, nil
	}
	return tried, tried.Make(tried.Path, targets...)
}

// SolveBySection creates the learner's copy, which must not exist yet, solves its steps, and removes it at the end.
// Each time all steps of a section of the chapter are solved, it calls play with that section and the section of the
// next step, or "" after the last.
func (c *Copy) SolveBySection(play func(solved, next string) error) (err error) {
	if err := c.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.Path)) }()
	for at, step := range c.Steps {
		if err := c.pass(step); err != nil {
			return err
		}
		solved, next := c.Sections(at + 1)
		if solved != step.Section() {
			continue
		}
		if err := play(solved, next); err != nil {
			return err
		}
	}
	return nil
}

// Verify solves the steps one by one in a copy of its own. Before it solves a step, it verifies that the step's check
// fails because the step's code is missing, and in the way that the chapter shows. Once the step is solved, it verifies
// that the check passes and that each of its patterns' alternatives matches a test, that the whole program compiles,
// and that the copy has all files of the form after this step except generated ones, with the same content. After the
// last step, that form is the finished stage. Verify returns an error that names the steps for which any of this fails.
// It doesn't repeat the checks of earlier steps, because the code of a step may be naive on purpose and break them
// until a later step repairs it.
//
// If only is not empty, Verify verifies just the steps with these IDs, and merely solves those before and between them.
// With remember, it solves a step without checking it if an earlier run has verified the step, and nothing that the
// verification depends on has changed since. Several calls may run at the same time, even for one stage, if each begins
// with a different step.
func (s *Stage) Verify(ctx context.Context, only []string, remember bool, makeTargets func(dir string, targets ...string) error, report func(step Step, failed, passed time.Duration, found string)) (err error) {
	first, last := 0, len(s.Steps)-1
	if len(only) > 0 {
		first, last = last, first
	}
	for _, id := range only {
		at, err := s.index(id)
		if err != nil {
			return err
		}
		first, last = min(first, at), max(last, at)
	}
	tried, err := s.startVerification(s.Steps[first].ID, s.Steps[:first], makeTargets)
	if err != nil {
		return err
	}
	end, err := tried.ShareControlPlane(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	outside := ""
	if remember {
		if outside, err = s.outside(ctx); err != nil {
			return err
		}
	}
	var problems []error
	for at := first; at <= last; at++ {
		step := s.Steps[at]
		if len(only) > 0 && !slices.Contains(only, step.ID) {
			if err := tried.pass(step); err != nil {
				return err
			}
			continue
		}
		fingerprint := ""
		if remember {
			if fingerprint, err = tried.stepFingerprint(outside, at); err != nil {
				return err
			}
			verified, err := s.Verified(fingerprint)
			if err != nil {
				return err
			}
			if verified {
				if err := errors.Join(tried.pass(step), tried.asDerived(at+1)); err != nil {
					return fmt.Errorf("step %s, solved: %w", step.ID, err)
				}
				continue
			}
		}
		known := len(problems)
		began := time.Now()
		finding, err := tried.CheckStep(ctx, step.ID)
		if err != nil {
			return err
		}
		failed := time.Since(began)
		if problem := intended(step, finding); problem != "" {
			problems = append(problems, fmt.Errorf("step %s, before it is solved: %s", step.ID, problem))
		} else if err := s.checkShown(step, finding); err != nil {
			problems = append(problems, fmt.Errorf("step %s, before it is solved: %w", step.ID, err))
		}
		if err := tried.solveUnkept(step); err != nil {
			return err
		}
		if err := errors.Join(tried.give(step), tried.asDerived(at+1)); err != nil {
			problems = append(problems, fmt.Errorf("step %s, solved: %w", step.ID, err))
		}
		began = time.Now()
		left, ran, err := tried.checkStep(ctx, step.ID)
		if err != nil {
			return err
		}
		passed := time.Since(began)
		if left != nil {
			problems = append(problems, fmt.Errorf("step %s, solved: its check fails: %s", step.ID, left.Found))
		}
		for _, pattern := range ran.unmatched {
			problems = append(problems, fmt.Errorf("step %s, solved: no test that ran matches %s, a part of its check: has a test been renamed?", step.ID, pattern))
		}
		message, err := tried.build(ctx)
		if err != nil {
			return err
		}
		if message != "" {
			problems = append(problems, fmt.Errorf("step %s, solved: the program does not compile: %s", step.ID, message))
		}
		message = ""
		if finding != nil {
			message = finding.Found
		}
		report(step, failed, passed, message)
		if fingerprint != "" && len(problems) == known {
			if err := s.NoteVerified(fingerprint); err != nil {
				return err
			}
		}
	}
	return errors.Join(problems...)
}

// pass solves a step and runs its make targets, but not its checks.
func (c *Copy) pass(step Step) error {
	if err := errors.Join(c.solveUnkept(step), c.give(step)); err != nil || len(step.Make) == 0 {
		return err
	}
	return c.Make(c.Path, step.Make...)
}

// solveUnkept solves a step in a copy that no learner has written in, so it doesn't keep the old files. It doesn't run
// the step's make targets.
func (c *Copy) solveUnkept(step Step) error {
	_, kept, err := c.solveFiles(step.ID)
	if err == nil && kept != "" {
		err = os.RemoveAll(filepath.Join(c.Root, kept))
	}
	return err
}

// notTried matches the test kit's message about a behaviour that it could not try, for example because the operator
// lacks a behaviour on which that one builds.
var notTried = regexp.MustCompile(`(?m)^behaviour "[a-z-]+": not tried`)

// intended returns what is wrong with the result of a check that should fail, because its step is not solved or because
// the copy contains its break. If the check fails as it should, intended returns "".
func intended(step Step, finding *Finding) string {
	switch {
	case finding == nil:
		return "its check passes"
	case finding.Unbuilt:
		return "its check fails because the program does not compile: " + finding.Found
	case finding.Early:
		return "its check fails because the tests end early: " + finding.Found
	case finding.panics() != "":
		return "a test panics instead of saying what is missing: " + finding.panics()
	case notTried.MatchString(finding.Found):
		return "its check finds that the behaviour can't even be tried: " + finding.Found
	case finding.Step.ID != step.ID:
		return "its check blames step " + finding.Step.ID
	}
	return ""
}

// panicked matches the message of a panic, or of a fatal error with which Go ends a program.
var panicked = regexp.MustCompile(`(?m)^\s*(panic|fatal error): `)

// panics returns the name and the message of a test that panicked, or "" if none did.
func (f *Finding) panics() string {
	for _, failure := range f.failures {
		if panicked.MatchString(failure.message) {
			return failure.name + ":\n" + firstLines(failure.message, 12)
		}
	}
	return ""
}

// asDerived returns an error if a file of the form with the given number of steps done is missing or different in the
// copy, whose steps were solved one by one. It ignores generated files.
func (c *Copy) asDerived(done int) error {
	wanted, err := c.Form(done)
	if err != nil {
		return err
	}
	for name, file := range wanted {
		if generated(name) {
			continue
		}
		found, err := os.ReadFile(filepath.Join(c.Path, filepath.FromSlash(name)))
		if err != nil {
			return fmt.Errorf("the copy lacks %s", name)
		}
		if string(found) != string(file.content) {
			return fmt.Errorf("%s, solved step by step, differs from the form that the marks define", name)
		}
	}
	return nil
}

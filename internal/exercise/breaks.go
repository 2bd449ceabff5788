package exercise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Break is a small change to a file of the finished stage that introduces a known bug. Learners can put one into their
// copy with a command, and then use the check's report to find and fix it.
type Break struct {
	// Name says what fails. It can be the name of a behaviour of the test kit.
	Name string `json:"name"`
	// File is the file to change.
	File string `json:"file"`
	// Old is the text that New replaces. It must occur exactly once in the finished file.
	Old string `json:"old"`
	New string `json:"new"`
	// Check fails while the file contains the change.
	Check Check `json:"check"`
}

// asStep wraps the break in a Step, so that a Finding can report it. The step doesn't name the file, because that would
// give the bug away.
func (b Break) asStep() Step {
	return Step{ID: b.Name, Title: "Find what is broken", Task: "A change to your copy broke one thing. Use what the check found to locate and fix it.", Checks: []Check{b.Check}}
}

func (s *Stage) validateBreaks() error {
	seen := map[string]bool{}
	for _, broken := range s.Breaks {
		var problem string
		switch {
		case broken.Name == "" || seen[broken.Name]:
			problem = "it needs a unique name"
		case broken.File == "" || broken.Old == "" || broken.Old == broken.New:
			problem = "it needs a file and two different texts, old and new"
		case broken.Check.Run == "":
			problem = "its check needs the names of the Go tests to run, or of the test that runs the specs"
		}
		if problem != "" {
			return fmt.Errorf("%s: break %q: %s", filepath.Join(s.Dir, FileName), broken.Name, problem)
		}
		seen[broken.Name] = true
	}
	return nil
}

func (s *Stage) find(name string) (Break, error) {
	var names []string
	for _, broken := range s.Breaks {
		if broken.Name == name {
			return broken, nil
		}
		names = append(names, broken.Name)
	}
	if len(names) == 0 {
		return Break{}, fmt.Errorf("stage %d has nothing to break", s.Number)
	}
	return Break{}, fmt.Errorf("stage %d has no break %q: choose from %s", s.Number, name, strings.Join(names, ", "))
}

// broken returns the finished file that a break changes: without the break, and with it.
func (s *Stage) broken(change Break) (finished, broken []byte, err error) {
	files, err := s.Form(len(s.Steps))
	if err != nil {
		return nil, nil, err
	}
	text := string(files[change.File].content)
	if count := strings.Count(text, change.Old); count != 1 {
		return nil, nil, fmt.Errorf("%s: break %q: its old text must occur exactly once in %s, but occurs %d times", filepath.Join(s.Dir, FileName), change.Name, change.File, count)
	}
	return []byte(text), []byte(strings.Replace(text, change.Old, change.New, 1)), nil
}

// Break puts a break into the copy, in which all steps must be done and no break may be left. It returns the folder
// with the original file. If the program would not compile with the break, Break restores the file and returns an
// error.
func (c *Copy) Break(ctx context.Context, name string) (kept string, err error) {
	if err := c.Exists(); err != nil {
		return "", err
	}
	change, err := c.find(name)
	if err != nil {
		return "", err
	}
	next, err := c.Next()
	if err != nil {
		return "", err
	}
	if next < len(c.Steps) {
		return "", fmt.Errorf("%s must be finished before you can break it: run `make stage-%d check` until it says that all steps are done", c.name(), c.Number)
	}
	current, _, err := c.Broken()
	if err != nil {
		return "", err
	}
	if current != nil {
		return "", fmt.Errorf("%s already has a bug to find: look for it with `make stage-%d check`, or remove it with `make stage-%d solve`", c.name(), c.Number, c.Number)
	}
	path := filepath.Join(c.Path, filepath.FromSlash(change.File))
	theirs, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the file to break: %w", err)
	}
	spoiled, err := c.spoil(change, theirs)
	if err != nil {
		return "", err
	}
	folder, err := c.keep("break-"+change.Name, change.File)
	if err != nil {
		return "", err
	}
	if err := replaceFile(path, spoiled, 0o644); err != nil {
		return "", fmt.Errorf("break %s: %w", change.File, err)
	}
	if message, err := c.build(ctx); err != nil || message != "" {
		restored := replaceFile(path, theirs, 0o644)
		if err == nil {
			err = fmt.Errorf("your %s differs too much from the solution for this bug, so nothing was changed. With the bug, your code would not compile:\n%s", change.File, message)
		}
		return "", errors.Join(err, restored)
	}
	return c.relative(folder), c.noteBreak(change, folder)
}

// spoil returns the learner's file with the break in it. If the file contains the text to replace exactly once, spoil
// changes only that text. Otherwise, it replaces more: in a Go file, the whole declaration (see graft).
func (c *Copy) spoil(change Break, theirs []byte) ([]byte, error) {
	finished, broken, err := c.broken(change)
	if err != nil {
		return nil, err
	}
	if strings.Count(string(theirs), change.Old) == 1 {
		return []byte(strings.Replace(string(theirs), change.Old, change.New, 1)), nil
	}
	return graft(change.File, theirs, finished, broken)
}

// Broken returns the break that is in the copy, and the folder with the original file. Without a break, it returns nil.
// If the stage no longer has the break, Broken removes it from the progress file and returns an error.
func (c *Copy) Broken() (*Break, string, error) {
	lines, err := c.progress()
	if err != nil {
		return nil, "", err
	}
	for _, fields := range lines {
		if len(fields) < 5 || fields[1] != breakWord {
			continue
		}
		change, err := c.find(fields[2])
		if err != nil {
			return nil, "", errors.Join(err, c.forget(breakWord))
		}
		return &change, filepath.Join(c.work(), "kept", fields[4]), nil
	}
	return nil, "", nil
}

// breakWord marks the line of the progress file that records a break. Other lines have a step's ID in its place.
const breakWord = "break"

func (c *Copy) noteBreak(change Break, folder string) error {
	return c.append(breakWord, change.Name, time.Now().Format(time.DateOnly), filepath.Base(folder))
}

// CheckBreak runs the check of the break that is in the copy. Once the bug is fixed, it removes the break from the
// progress file and returns nil.
func (c *Copy) CheckBreak(ctx context.Context, change Break) (*Finding, error) {
	overlay, err := c.writeOverlay(len(c.Steps))
	if err != nil {
		return nil, err
	}
	found, err := c.goTest(ctx, change.Check, overlay)
	if err != nil {
		return nil, err
	}
	if finding := c.judge(change.asStep(), found); finding != nil {
		return finding, c.nameMissing(finding)
	}
	return nil, c.forget(breakWord)
}

// Unbreak restores the file that a break changed, after saving its current content. It returns the file's name and the
// folder with the saved file.
func (c *Copy) Unbreak() (name, kept string, err error) {
	change, folder, err := c.Broken()
	if err != nil {
		return "", "", err
	}
	if change == nil {
		return "", "", fmt.Errorf("%s is not broken", c.name())
	}
	old, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(change.File)))
	if err != nil {
		return "", "", fmt.Errorf("read the original file: %w", err)
	}
	path := filepath.Join(c.Path, filepath.FromSlash(change.File))
	now, err := c.keep("unbreak-"+change.Name, change.File)
	if err != nil {
		return "", "", err
	}
	if err := replaceFile(path, old, 0o644); err != nil {
		return "", "", fmt.Errorf("restore %s: %w", change.File, err)
	}
	return change.File, c.relative(now), c.forget(breakWord)
}

// VerifyBreaks puts each break into a copy of the finished stage, one at a time. It returns an error if a break's old
// text does not occur exactly once, or if the break's check passes, or fails for the wrong reason: for example, because
// the program does not compile.
func (s *Stage) VerifyBreaks(ctx context.Context, makeTargets func(dir string, targets ...string) error, report func(broken Break, took time.Duration, found string)) (err error) {
	if len(s.Breaks) == 0 {
		return nil
	}
	tried, err := s.startVerification("breaks-"+filepath.Base(s.Dir), s.Steps, makeTargets)
	if err != nil {
		return err
	}
	end, err := tried.ShareControlPlane(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	var problems []error
	for _, change := range s.Breaks {
		finished, broken, err := s.broken(change)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		path := filepath.Join(tried.Path, filepath.FromSlash(change.File))
		if err := replaceFile(path, broken, 0o644); err != nil {
			return fmt.Errorf("break %s: %w", change.File, err)
		}
		begun := time.Now()
		finding, err := tried.CheckBreak(ctx, change)
		if err := errors.Join(err, replaceFile(path, finished, 0o644)); err != nil {
			return err
		}
		if problem := intended(change.asStep(), finding); problem != "" {
			problems = append(problems, fmt.Errorf("break %s: %s", change.Name, problem))
			continue
		}
		report(change, time.Since(begun), finding.Found)
	}
	return errors.Join(problems...)
}

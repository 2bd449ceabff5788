package exercise

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"example.com/operator-workshop/internal/chapter"
)

// foundField begins the line in a check's output that says what the check found. alsoField begins the lines that name
// the failed tests after the first.
const foundField, alsoField = "  found   ", "also: "

// shown returns what a step's check finds before the step is solved, as the chapter shows it. It looks between the
// previous box and the step's own for the last code block that begins with the check's command, and returns its lines
// from foundField on, without their indentation.
func (s *Stage) shown(text string, step Step) ([]string, error) {
	before, _, _ := strings.Cut(text, boxBegin(step))
	before = before[strings.LastIndex(before, boxEnd)+1:]
	command := fmt.Sprintf("```text\n$ make stage-%d check\n", s.Number)
	if at := strings.LastIndex(before, command); at >= 0 {
		fence, _, _ := strings.Cut(before[at+len(command):], "\n```")
		if _, found, shows := strings.Cut(fence, foundField); shows {
			lines := strings.Split(found, "\n")
			for i, line := range lines {
				lines[i] = strings.TrimPrefix(line, strings.Repeat(" ", len(foundField)))
			}
			return lines, nil
		}
	}
	return nil, fmt.Errorf("step %s: show above its box what the check finds before the step is solved, in a ```text block that begins with `$ make stage-%d check`", step.ID, s.Number)
}

// readShown reads the stage's chapter, and returns what it shows of a step's check.
func (s *Stage) readShown(step Step) ([]string, error) {
	text, err := os.ReadFile(s.Chapter)
	if err != nil {
		return nil, fmt.Errorf("read the chapter: %w", err)
	}
	return s.shown(string(text), step)
}

// checkShown returns an error if the chapter does not show what a step's check found before the step was solved.
func (s *Stage) checkShown(step Step, finding *Finding) error {
	shown, err := s.readShown(step)
	if err != nil {
		return err
	}
	return finding.agrees(shown)
}

// agrees returns an error if a chapter shows something other than the finding. The failed tests come in no fixed
// order, so the chapter may show any of them.
func (f *Finding) agrees(shown []string) error {
	message := func(name string) (string, bool) {
		at := slices.IndexFunc(f.failures, func(failure testFailure) bool { return failure.name == name })
		if at < 0 {
			return "", false
		}
		return shorten(f.failures[at].message), true
	}
	found := f.Found
	if len(f.failures) > 0 {
		name := strings.TrimSuffix(shown[0], ":")
		text, failed := message(name)
		if !failed {
			return fmt.Errorf("the chapter shows that %q fails, but it doesn't; what fails is: %s", name, f.Found)
		}
		found = name + ":\n" + text
	}
	also := len(shown)
	for i, line := range shown {
		name, is := strings.CutPrefix(line, alsoField)
		if !is {
			continue
		}
		also = min(also, i)
		if _, failed := message(name); !failed {
			return fmt.Errorf("the chapter shows that %q also fails, but it doesn't; what fails is: %s", name, f.Found)
		}
	}
	if _, _, same := chapter.Match(shown[:also], strings.Split(found, "\n")); !same {
		return fmt.Errorf("the chapter doesn't show what the check finds:\n%s", found)
	}
	return nil
}

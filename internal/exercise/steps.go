package exercise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/internal/exercise/form"
	"example.com/operator-workshop/internal/repo"
)

// FileName is the name of the file that lists a stage's steps.
const FileName = "exercises.yaml"

// longestStep is the maximum number of minutes that a step may take.
const longestStep = 15

// Stage is a stage with its exercises.
type Stage struct {
	repo.Stage `json:"-"`
	// Root is the root folder of the checkout.
	Root string `json:"-"`
	// Start lists the targets of the stage's Makefile that complete a new copy, such as generate.
	Start []string `json:"start,omitempty"`
	// Steps are in the order in which a learner does them.
	Steps []Step `json:"steps"`
	// Breaks are the bugs that learners can put into a finished copy.
	Breaks []Break `json:"breaks,omitempty"`
	// Unstepped lists the tests that check no step, except end-to-end tests, and says why.
	Unstepped []Unstepped `json:"unstepped,omitempty"`
	// Unbroken lists the behaviours of the test kit that have no break, and says why.
	Unbroken map[string]string `json:"unbroken,omitempty"`

	mu    sync.Mutex
	forms map[int]tree // by the number of steps that are done
}

// Step is one exercise.
type Step struct {
	// ID is the number of the chapter's section that the step belongs to, such as 2.9. A letter follows if the section has
	// several steps.
	ID string `json:"id"`
	// Title completes "Step 2.9: …", without a full stop.
	Title string `json:"title"`
	// Task says what to write.
	Task string `json:"task"`
	// Hints help without giving the solution away. They are printed together.
	Hints []string `json:"hints"`
	// Minutes is roughly how long the step takes.
	Minutes int `json:"minutes"`
	// Make lists the targets of the stage's Makefile to run before the checks, such as generate.
	Make []string `json:"make,omitempty"`
	// Checks all pass if this step and all earlier ones are done. At least one fails if this step is not.
	Checks []Check `json:"checks"`
}

// Check is a run of `go test`.
type Check struct {
	// Package is the folder of the package to test, such as ./internal/controller. An empty string means ".".
	Package string `json:"package,omitempty"`
	// Run is a regular expression that matches the names of the Go tests to run. For specs, it matches the test that runs
	// them.
	Run string `json:"run"`
	// Specs is a regular expression that matches the texts of the Ginkgo specs to run.
	Specs string `json:"specs,omitempty"`
	// Label is a Ginkgo label filter, such as the name of one of the test kit's behaviours.
	Label string `json:"label,omitempty"`
}

var stepID = regexp.MustCompile(`^[0-9]+\.[0-9]+[a-z]?$`)

// Load reads a stage's exercises. If the stage has none, it returns a Stage without steps.
func Load(checkout repo.Repo, stage repo.Stage) (*Stage, error) {
	loaded := &Stage{Stage: stage, Root: checkout.Root}
	if stage.Dir == "" {
		return loaded, nil
	}
	content, err := os.ReadFile(filepath.Join(stage.Dir, FileName))
	if errors.Is(err, os.ErrNotExist) {
		return loaded, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the exercises: %w", err)
	}
	if err := yaml.UnmarshalStrict(content, loaded); err != nil {
		return nil, fmt.Errorf("%s: %w", FileName, err)
	}
	return loaded, errors.Join(loaded.validate(), loaded.validateBreaks())
}

func (s *Stage) validate() error {
	seen := map[string]bool{}
	for _, step := range s.Steps {
		var problem string
		switch {
		case !stepID.MatchString(step.ID):
			problem = "its ID must be a section of the chapter, such as 2.9, with a letter if the section has several steps, such as 2.9b"
		case seen[step.ID]:
			problem = "another step has this ID"
		case step.Title == "" || strings.HasSuffix(step.Title, "."):
			problem = "it needs a title without a full stop"
		case step.Task == "" || len(step.Hints) == 0 || step.Minutes == 0:
			problem = "it needs a task, hints and minutes"
		case step.Minutes > longestStep:
			problem = fmt.Sprintf("it takes %d minutes, which is more than %d: split it", step.Minutes, longestStep)
		case len(step.Checks) == 0:
			problem = "it has no check"
		}
		for _, check := range step.Checks {
			if check.Run == "" {
				problem = "a check needs the names of the Go tests to run, or of the test that runs the specs"
			}
		}
		if problem != "" {
			return fmt.Errorf("%s: step %q: %s", filepath.Join(s.Dir, FileName), step.ID, problem)
		}
		seen[step.ID] = true
	}
	return nil
}

// Section returns the section of the chapter that the step belongs to.
func (s Step) Section() string { return strings.TrimRight(s.ID, "abcdefghijklmnopqrstuvwxyz") }

// Sections returns the chapter's last section whose steps are all done, and the section of the next step. Each is "" if
// there is none. done is the number of steps that are done.
func (s *Stage) Sections(done int) (finished, next string) {
	if done < len(s.Steps) {
		next = s.Steps[done].Section()
	}
	for _, step := range s.Steps[:done] {
		if step.Section() != next {
			finished = step.Section()
		}
	}
	return finished, next
}

func (s *Stage) index(id string) (int, error) {
	at := slices.IndexFunc(s.Steps, func(step Step) bool { return step.ID == id })
	if at < 0 {
		var ids, section []string
		for _, step := range s.Steps {
			ids = append(ids, step.ID)
			if step.Section() == id {
				section = append(section, step.ID)
			}
		}
		if len(section) > 0 {
			return 0, fmt.Errorf("section %s has the steps %s: name one, such as STEP=%s", id, list(section), section[0])
		}
		return 0, fmt.Errorf("stage %d has no step %q: choose from %s", s.Number, id, strings.Join(ids, ", "))
	}
	return at, nil
}

// Step returns the step with the given ID.
func (s *Stage) Step(id string) (Step, error) {
	at, err := s.index(id)
	if err != nil {
		return Step{}, err
	}
	return s.Steps[at], nil
}

// FileAfter returns the form of a stage's file after a step, or an error if the file does not exist yet. name is the
// file's path relative to the root of the checkout, with slashes.
func FileAfter(checkout repo.Repo, name, id string, source []byte) ([]byte, error) {
	after, exists, err := fileInForm(checkout, name, id, source, 1)
	if err == nil && !exists {
		err = fmt.Errorf("the file does not exist yet after step %s", id)
	}
	return after, err
}

// FileBefore returns the form of a stage's file before a step, or nil if the file does not exist yet.
func FileBefore(checkout repo.Repo, name, id string, source []byte) ([]byte, error) {
	before, _, err := fileInForm(checkout, name, id, source, 0)
	return before, err
}

// fileInForm returns a file's form, and whether the file exists in that form. In it, all steps before the one with the
// given ID are done. more is the number of further steps that are done, beginning with that one.
func fileInForm(checkout repo.Repo, name, id string, source []byte, more int) (content []byte, exists bool, err error) {
	stages, err := checkout.Stages()
	if err != nil {
		return nil, false, err
	}
	for _, found := range stages {
		if found.Dir == "" || !strings.HasPrefix(name, filepath.Base(found.Dir)+"/") {
			continue
		}
		stage, err := Load(checkout, found)
		if err != nil {
			return nil, false, err
		}
		at, err := stage.index(id)
		if err != nil {
			return nil, false, err
		}
		return form.Derive(name, source, upTo{stage, at + more})
	}
	return nil, false, fmt.Errorf("step=%s: the file belongs to no stage", id)
}

// upTo is the form in which the given number of steps are done.
type upTo struct {
	stage *Stage
	done  int
}

// Pending reports whether a step is not done yet in this form.
func (f upTo) Pending(id string) (bool, error) {
	at, err := f.stage.index(id)
	return at >= f.done, err
}

// Title returns a step's title, or "" if there is no such step.
func (f upTo) Title(id string) string {
	at, err := f.stage.index(id)
	if err != nil {
		return ""
	}
	return f.stage.Steps[at].Title
}

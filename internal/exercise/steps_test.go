package exercise

import (
	"strings"
	"testing"
)

func TestValidateRefusesFaultySteps(t *testing.T) {
	tests := map[string]struct {
		change func(*Step)
		wanted string
	}{
		"an ID that is not a section": {func(s *Step) { s.ID = "one" }, "its ID must be a section of the chapter"},
		"the ID of another step":      {func(s *Step) { s.ID = "1.2a" }, "another step has this ID"},
		"a title with a full stop":    {func(s *Step) { s.Title = "Add." }, "it needs a title without a full stop"},
		"no hints":                    {func(s *Step) { s.Hints = nil }, "it needs a task, hints and minutes"},
		"more than fifteen minutes":   {func(s *Step) { s.Minutes = 16 }, "it takes 16 minutes, which is more than 15: split it"},
		"no check":                    {func(s *Step) { s.Checks = nil }, "it has no check"},
		"a check that runs no tests":  {func(s *Step) { s.Checks[0].Run = "" }, "run"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stage := newToy(t)
			test.change(&stage.Steps[0])
			if err := stage.validate(); err == nil || !strings.Contains(err.Error(), test.wanted) {
				t.Errorf("expected an error with %q\nfound %v", test.wanted, err)
			}
		})
	}
	if err := newToy(t).validate(); err != nil {
		t.Errorf("the unchanged stage must be valid: %v", err)
	}
}

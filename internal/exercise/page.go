package exercise

import (
	"fmt"
	"strings"
)

// pageBegin and pageEnd enclose what FillPage writes.
const pageBegin, pageEnd = "<!-- the tests of the steps -->\n", "<!-- end of the tests of the steps -->"

// FillPage fills a page with the tests of each stage, except end-to-end tests: those that check its steps, and those
// that check none.
func FillPage(page string, stages []*Stage) (string, error) {
	before, rest, found := strings.Cut(page, pageBegin)
	_, after, ends := strings.Cut(rest, pageEnd)
	if !found || !ends {
		return "", fmt.Errorf("the page must have the lines %s and %s", strings.TrimSpace(pageBegin), pageEnd)
	}
	var filled strings.Builder
	for _, stage := range stages {
		if err := stage.testTable(&filled); err != nil {
			return "", err
		}
	}
	return before + pageBegin + filled.String() + "\n" + pageEnd + after, nil
}

// testTable writes a table of the stage's steps and the tests that check them, and then the tests that check no step.
func (s *Stage) testTable(page *strings.Builder) error {
	tests, err := s.tests()
	if err != nil {
		return err
	}
	fmt.Fprintf(page, "\n## Stage %d\n\n| step | Go tests | specs, which run on a control plane |\n|---|---|---|\n", s.Number)
	for _, step := range s.Steps {
		selected, err := s.checkedBy(step, tests)
		if err != nil {
			return err
		}
		var functions, specs []string
		for _, test := range selected {
			switch {
			case test.spec:
				specs = append(specs, test.name)
			case !s.runsSpecs(test):
				functions = append(functions, "`"+test.name+"`")
			}
		}
		for _, check := range step.Checks {
			if check.Label != "" {
				specs = append(specs, "the test kit's `"+strings.ReplaceAll(check.Label, " || ", "`, `")+"`")
			}
		}
		fmt.Fprintf(page, "| %s %s | %s | %s |\n", step.ID, step.Title, strings.Join(functions, ", "), strings.ReplaceAll(strings.Join(specs, "; "), "|", `\|`))
	}
	for i, group := range s.Unstepped {
		if i == 0 {
			fmt.Fprint(page, "\nTests that check no step:\n\n")
		}
		var names []string
		for _, file := range group.Files {
			names = append(names, "`"+file+"`")
		}
		fmt.Fprintf(page, "- %s\n", wrapItem(group.Reason+" "+strings.Join(append(names, group.Tests...), ", ")))
	}
	return nil
}

// runsSpecs reports whether a Go test is the one that runs the Ginkgo specs.
func (s *Stage) runsSpecs(test suiteTest) bool {
	for _, step := range s.Steps {
		for _, check := range step.Checks {
			runs, err := check.selects(test)
			if (check.Label != "" || check.Specs != "") && runs && err == nil {
				return true
			}
		}
	}
	return false
}

func wrapItem(text string) string {
	return strings.ReplaceAll(wrap(text, lineLength-2), "\n", "\n  ")
}

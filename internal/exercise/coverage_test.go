package exercise

import (
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/internal/repo"
)

// realStages returns the stages of this checkout that have exercises.
func realStages(t *testing.T) []*Stage {
	t.Helper()
	checkout, err := repo.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	stages, err := checkout.Stages()
	if err != nil {
		t.Fatal(err)
	}
	var loaded []*Stage
	for _, found := range stages {
		stage, err := Load(checkout, found)
		if err != nil {
			t.Fatal(err)
		}
		if len(stage.Steps) > 0 {
			loaded = append(loaded, stage)
		}
	}
	return loaded
}

func TestEveryTestChecksAStepOrIsListedWithAReason(t *testing.T) {
	for _, stage := range realStages(t) {
		t.Run(stage.Name, func(t *testing.T) {
			if err := stage.CheckCoverage(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCheckCoverage(t *testing.T) {
	stage := newToy(t)
	if err := stage.CheckCoverage(); err != nil {
		t.Fatal(err)
	}
	stage.editTests(t, "func TestGreet", "func TestMore(*testing.T) {}\n\nvar _ = Describe(\"a toy\", func() {\n\tIt(\"is \"+kind+\"small\", func() {})\n})\n\nfunc TestGreet")
	stage.Unstepped = []Unstepped{{Tests: []string{"TestAdd", "TestAbsent"}, Reason: "it is a test"}}
	err := toyAgain(t, stage).CheckCoverage()
	for _, wanted := range []string{
		`no step's check runs "TestMore" of toy_test.go`, `no step's check runs "a toy is …small" of toy_test.go`,
		`unstepped names "TestAbsent", which is neither a test`, `unstepped names "TestAdd", which a step's check runs`,
	} {
		if err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("expected an error with %q\nfound %v", wanted, err)
		}
	}
	stage.Unstepped = []Unstepped{{Tests: []string{"TestMore", "a toy is …small"}, Reason: "they do nothing"}}
	if err := toyAgain(t, stage).CheckCoverage(); err != nil {
		t.Error(err)
	}
	stage.Unstepped = []Unstepped{{Files: []string{"toy_test.go"}, Reason: "they do nothing"}}
	if err := toyAgain(t, stage).CheckCoverage(); err != nil {
		t.Error(err)
	}
}

// toyAgain loads a toy stage again, and keeps its unstepped tests.
func toyAgain(t *testing.T, stage *Stage) *Stage {
	again := toyAt(t, stage.Root)
	again.Unstepped = stage.Unstepped
	return again
}

func TestSplitOutside(t *testing.T) {
	for expression, wanted := range map[string][]string{
		"^TestA$":                        {"^TestA$"},
		"^TestA$/^(x|y)$|^Test(B|C)[/|]": {"^TestA$/^(x|y)$", "^Test(B|C)[/|]"},
	} {
		if got := splitOutside(expression, '|'); !slices.Equal(got, wanted) {
			t.Errorf("%s: expected the parts %q\nfound %q", expression, wanted, got)
		}
	}
}

func TestUnmatched(t *testing.T) {
	tests := []string{"TestAdd", "TestAdd/one", "TestAdd/two/halves", "TestGreet"}
	for run, wanted := range map[string][]string{
		"^TestAdd$":                      nil,
		"^Test(Add|Greet)$":              nil,
		"^TestAdd$|^TestGreet$":          nil,
		"^TestAdd$/^(one|two)$":          nil,
		"^TestAdd$/^(one|three)$":        {"^TestAdd$/^(three)$"},
		"^TestAdd$|^TestHello$":          {"^TestHello$"},
		"TestAdd/(one|t(wo|en))":         {"TestAdd/(t(en))"},
		"Test(Add|Sub)/(two|four)/[hx].": {"Test(Sub)/(two|four)/[hx].", "Test(Add|Sub)/(four)/[hx]."},
		"TestGreet/one":                  {"TestGreet/one"},
	} {
		got, err := Check{Run: run}.unmatched(outcome{tests: tests})
		if err != nil || !slices.Equal(got, wanted) {
			t.Errorf("%s: expected that %q match no test\nfound %q, error %v", run, wanted, got, err)
		}
	}
	specs := outcome{tests: []string{"the schema accepts a/b", "the schema refuses c"}, reported: true}
	got, err := Check{Run: "TestSpecs", Specs: "the schema (accepts a/|refuses d)"}.unmatched(specs)
	if err != nil || !slices.Equal(got, []string{"the schema (refuses d)"}) {
		t.Errorf("expected one alternative that matches no spec\nfound %q, error %v", got, err)
	}
}

func TestFillPage(t *testing.T) {
	stage := newToy(t)
	stage.Unstepped = []Unstepped{{Files: []string{"more_test.go"}, Reason: "They do nothing."}}
	stage.Steps[2].Checks = append(stage.Steps[2].Checks, Check{Run: "TestSpecs", Label: "drift || crash"})
	page := "# A page\n\n" + pageBegin + "old\n" + pageEnd + "\nThe end.\n"
	filled, err := FillPage(page, []*Stage{stage})
	if err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{
		"# A page\n", "\nThe end.\n", "\n## Stage 1\n", "| 1.1 Add two numbers | `TestAdd` |  |\n",
		"| 1.2b Say it to someone | `TestName` | the test kit's `drift`, `crash` |\n", "\n- They do nothing. `more_test.go`\n",
	} {
		if !strings.Contains(filled, wanted) {
			t.Errorf("the page lacks %q:\n%s", wanted, filled)
		}
	}
	if strings.Contains(filled, "old") {
		t.Errorf("the old text is still there:\n%s", filled)
	}
	if again, err := FillPage(filled, []*Stage{stage}); err != nil || again != filled {
		t.Errorf("filling the page again must not change it: error %v\n%s", err, again)
	}
	if _, err := FillPage("# A page\n", nil); err == nil {
		t.Error("expected an error for a page without the lines that enclose the tables")
	}
}

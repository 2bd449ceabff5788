package exercise

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"example.com/operator-workshop/internal/chapter"
	"example.com/operator-workshop/internal/repo"
)

// newToy is a checkout with one small stage of three steps.
func newToy(t *testing.T) *Stage {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/toy.txtar")
	if err != nil {
		t.Fatal(err)
	}
	// A path with a space, as checkouts may have.
	root := filepath.Join(t.TempDir(), "a checkout")
	for _, file := range archive.Files {
		path := filepath.Join(root, file.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, file.Data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	stage, err := Load(repo.Repo{Root: root}, repo.Stage{Number: 1, Name: "1-toy", Dir: filepath.Join(root, "01-toy"), Chapter: filepath.Join(root, "docs", "1-toy.md")})
	if err != nil {
		t.Fatal(err)
	}
	return stage
}

func noMake(string, ...string) error { return errors.New("nothing is made here") }

// started is a copy that a learner has begun.
func started(t *testing.T) *Copy {
	t.Helper()
	own := newToy(t).Copy(noMake)
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	return own
}

func (c *Copy) read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(c.Path, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// edit replaces text in a file of the copy, as a learner would.
func (c *Copy) edit(t *testing.T, name, old, replacement string) {
	t.Helper()
	content := c.read(t, name)
	if !strings.Contains(content, old) {
		t.Fatalf("%s has no %q:\n%s", name, old, content)
	}
	if err := os.WriteFile(filepath.Join(c.Path, name), []byte(strings.Replace(content, old, replacement, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// check returns the steps that passed, and what was found.
func (c *Copy) check(t *testing.T) (string, *Finding) {
	t.Helper()
	var passed []string
	finding, err := c.Check(t.Context(), "", func(step Step, ran Ran, again bool) {
		if ran.Tests == 0 {
			t.Errorf("step %s passed without a test", step.ID)
		}
		if again {
			step.ID += " again"
		}
		passed = append(passed, step.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(passed, ", "), finding
}

const (
	addStub   = "\t// Your turn, step 1.1: Add two numbers.\n\treturn 0\n"
	greetStub = "\t// Your turn, step 1.2a: Say hello.\n\treturn \"\"\n"
)

func TestWhatRan(t *testing.T) {
	for wanted, ran := range map[string]Ran{
		"1 test":                              {Tests: 1},
		"2 specs on a control plane":          {Specs: 2},
		"3 tests, 1 spec on a control plane":  {Tests: 3, Specs: 1},
		"1 test, 10 specs on a control plane": {Tests: 1, Specs: 10},
	} {
		if ran.String() != wanted {
			t.Errorf("%+v is %q, not %q", ran, ran, wanted)
		}
	}
}

func TestALearnersWay(t *testing.T) {
	own := started(t)
	passed, finding := own.check(t)
	if passed != "" || finding == nil || finding.Step.ID != "1.1" || finding.Open != "work/01-toy/toy.go:6" ||
		!strings.Contains(finding.Found, "TestAdd/one:") || !strings.Contains(finding.Found, "expected 2, found 0") {
		t.Fatalf("before the first step: passed %q, found %+v", passed, finding)
	}
	if _, err := os.Stat(filepath.Join(own.Path, "later.go")); err == nil {
		t.Error("what comes with a later step is there from the start")
	}
	if strings.Contains(own.read(t, "toy_test.go"), "a name") {
		t.Error("a test of a later step is there from the start")
	}
	own.edit(t, "toy.go", addStub, "\treturn b + a\n")
	own.edit(t, "toy.go", greetStub, "\treturn \"hello\"\n")
	passed, finding = own.check(t)
	if passed != "1.1, 1.2a" || finding == nil || finding.Step.ID != "1.2b" {
		t.Fatalf("after two steps: passed %q, found %+v", passed, finding)
	}
	own.read(t, "later.go")
	if !strings.Contains(own.read(t, "toy_test.go"), "a name") {
		t.Error("the tests of the next step are not there to read")
	}
	own.edit(t, "toy.go", `"hello"`, `"hello " + name`)
	if passed, finding = own.check(t); passed != "1.2b, 1.1 again, 1.2a again, 1.2b again" || finding != nil {
		t.Fatalf("at the end: passed %q, found %+v", passed, finding)
	}
	own.edit(t, "toy.go", "b + a", "b - a")
	if passed, finding = own.check(t); finding == nil || finding.Step.ID != "1.1" {
		t.Fatalf("after a step was broken again: passed %q, found %+v", passed, finding)
	}
	if done, err := own.Done(); err != nil || strings.Join(done, " ") != "1.2a 1.2b" {
		t.Errorf("the progress says %v: %v", done, err)
	}
}

// TestWhatComesLaterIsExpectedOnceItIsThere has a test that expects another greeting before the last step than after it.
func TestWhatComesLaterIsExpectedOnceItIsThere(t *testing.T) {
	stage := newToy(t)
	original := *stage.Copy(noMake)
	original.Path = stage.Dir
	original.edit(t, "toy_test.go", `if got := greet("you"); !strings.HasPrefix(got, "hello") {`, `wanted := strings.TrimSpace("hello")
	//workshop:step 1.2b
	wanted = "hello you"
	if got := greet("you"); got != wanted {`)
	own := stage.Copy(noMake)
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{"1.1", "1.2a", "1.2b, 1.1 again, 1.2a again, 1.2b again"} {
		if _, _, err := own.Solve(strings.Split(wanted, ",")[0]); err != nil {
			t.Fatal(err)
		}
		if passed, finding := own.check(t); passed != wanted {
			t.Fatalf("passed %q, not %q, and found %+v", passed, wanted, finding)
		}
	}
	if finding, err := own.Check(t.Context(), "1.2a", func(Step, Ran, bool) {}); finding != nil || err != nil {
		t.Errorf("a step before the last: %+v %v", finding, err)
	}
}

func TestTestsOfALearner(t *testing.T) {
	own := started(t)
	own.edit(t, "toy.go", addStub, "\treturn a + b\n")
	own.edit(t, "toy.go", greetStub, "\treturn \"hello\"\n")
	own.edit(t, "toy_test.go", "add(1, 1)", "add(1, 1+0)")
	if passed, _ := own.check(t); passed != "1.1, 1.2a" {
		t.Fatalf("passed %q", passed)
	}
	if tests := own.read(t, "toy_test.go"); !strings.Contains(tests, "1+0") || strings.Contains(tests, "a name") {
		t.Errorf("tests that the learner has changed are overwritten:\n%s", tests)
	}
}

func TestWhatIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		spoil            func(*Copy)
		step, open, text string
	}{
		"a compile error in a later step": {
			spoil: func(own *Copy) {
				own.edit(t, "toy.go", addStub, "\treturn a + b\n")
				own.edit(t, "toy.go", greetStub, "\treturn nonsense\n")
			},
			step: "1.1", open: "work/01-toy/toy.go:11", text: "undefined: nonsense",
		},
		"a syntax error":          {spoil: func(own *Copy) { own.edit(t, "toy.go", addStub, "\treturn (\n") }, open: "work/01-toy/toy.go:7", text: "syntax error"},
		"a function that is gone": {spoil: func(own *Copy) { own.edit(t, "toy.go", "func add(", "func plus(") }, text: "undefined: add"},
		"an import that is absent": {spoil: func(own *Copy) {
			own.edit(t, "toy.go", "package toy\n", "package toy\n\nimport _ \"example.com/absent\"\n")
		}, text: "example.com/absent"},
		"a panic": {spoil: func(own *Copy) { own.edit(t, "toy.go", addStub, "\tpanic(\"oh\")\n") }, open: "work/01-toy/toy.go:6", text: "panic: oh"},
		"an exit": {spoil: func(own *Copy) {
			own.edit(t, "toy.go", addStub, "\tos.Exit(0)\n\treturn 0\n")
			own.edit(t, "toy.go", "package toy\n", "package toy\n\nimport \"os\"\n")
		}, text: "os.Exit(0)"},
		"tests made to pass": {
			spoil: func(own *Copy) { own.edit(t, "toy_test.go", "got != sum", "got == sum") }, text: "expected 2, found 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			own := started(t)
			test.spoil(own)
			_, finding := own.check(t)
			if finding == nil || !strings.Contains(finding.Found, test.text) || !strings.HasPrefix(finding.Open, test.open) {
				t.Fatalf("expected %q at %q\nfound %+v", test.text, test.open, finding)
			}
		})
	}
}

func TestAnEndlessLoopIsFound(t *testing.T) {
	timeout := goTestTimeout
	goTestTimeout = time.Second
	t.Cleanup(func() { goTestTimeout = timeout })
	own := started(t)
	own.edit(t, "toy.go", addStub, "\tselect {}\n")
	_, finding := own.check(t)
	if finding == nil || finding.Open != "work/01-toy/toy.go:6" || !strings.Contains(finding.Found, "does not end") {
		t.Fatalf("found %+v", finding)
	}
}

func TestSolveAndReset(t *testing.T) {
	own := started(t)
	own.edit(t, "toy.go", addStub, "\treturn a - b // almost\n")
	own.edit(t, "toy.go", "// Package toy is small.", "// Package toy is mine.")
	files, kept, err := own.Solve("1.1")
	if err != nil || strings.Join(files, " ") != "later.go toy.go" {
		t.Fatalf("solved %v: %v", files, err)
	}
	toy := own.read(t, "toy.go")
	for _, wanted := range []string{"return a + b", "Package toy is mine", "Your turn, step 1.2a"} {
		if !strings.Contains(toy, wanted) {
			t.Errorf("%q is missing after solve:\n%s", wanted, toy)
		}
	}
	old, err := os.ReadFile(filepath.Join(own.Root, kept, "toy.go"))
	if err != nil || !strings.Contains(string(old), "// almost") {
		t.Errorf("what the learner had is not kept in %s: %v", kept, err)
	}
	if files, _, err := own.Solve("1.1"); err != nil || len(files) > 0 {
		t.Errorf("solved a second time: %v: %v", files, err)
	}
	for _, id := range []string{"1.2a", "1.2b"} {
		if _, _, err := own.Solve(id); err != nil {
			t.Fatal(err)
		}
	}
	if _, finding := own.check(t); finding != nil {
		t.Fatalf("all are solved, and found %+v", finding)
	}
	if _, _, err := own.Undo("1.2b"); err != nil {
		t.Fatal(err)
	}
	if _, finding := own.check(t); finding == nil || finding.Step.ID != "1.2b" {
		t.Fatalf("a step was taken back, and found %+v", finding)
	}
	if _, err := own.Reset(); err != nil {
		t.Fatal(err)
	}
	if _, finding := own.check(t); finding == nil || finding.Step.ID != "1.1" {
		t.Fatalf("all was taken back, and found %+v", finding)
	}
}

func TestSolveMakesWhatIsGenerated(t *testing.T) {
	stage := newToy(t)
	stage.Steps[0].Make = []string{"generate", "manifests"}
	var made string
	own := stage.Copy(func(dir string, targets ...string) error {
		made = dir + " " + strings.Join(targets, " ")
		return nil
	})
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := own.Solve("1.1"); err != nil || made != own.Path+" generate manifests" {
		t.Fatalf("made %q: %v", made, err)
	}
	made = ""
	if _, _, err := own.Solve("1.1"); err != nil || made != "" {
		t.Fatalf("nothing was changed, and made %q: %v", made, err)
	}
	if _, _, err := own.Undo("1.1"); err != nil {
		t.Fatal(err)
	}
	own.Make = noMake
	files, kept, err := own.Solve("1.1")
	if err == nil || !strings.Contains(err.Error(), "nothing is made here") || len(files) == 0 || !strings.Contains(err.Error(), kept) {
		t.Errorf("expected an error that names the folder of what was there\nfound %v, %q: %v", files, kept, err)
	}
}

func TestAFindingNamesAFewTests(t *testing.T) {
	own := newToy(t).Copy(noMake)
	found := outcome{built: true, tests: 9}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		found.failures = append(found.failures, testFailure{name: name, message: "no"})
	}
	finding := own.judge(own.Steps[0], found)
	if want := "a:\nno\nalso: b\nalso: c\nalso: d\nalso: e\nalso: f\nand 2 more"; finding.Found != want {
		t.Errorf("expected %s\nfound %s", want, finding.Found)
	}
}

func TestAFailureBeforeTheSpecsHasAName(t *testing.T) {
	report := filepath.Join(t.TempDir(), "specs.json")
	content := `[{"SpecReports": [
		{"LeafNodeType": "BeforeSuite", "State": "failed", "Failure": {"Message": "no control plane"}},
		{"ContainerHierarchyTexts": ["a ticket"], "LeafNodeType": "It", "LeafNodeText": "is stored", "State": "failed"}
	]}]`
	if err := os.WriteFile(report, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	var found outcome
	found.readSpecs(report)
	want := []testFailure{{name: "BeforeSuite", message: "no control plane"}, {name: "a ticket is stored"}}
	if !slices.Equal(found.failures, want) {
		t.Errorf("expected %v\nfound %v", want, found.failures)
	}
}

func TestLinksOfACopyLeadToTheCheckout(t *testing.T) {
	stage := newToy(t)
	readme := "[chapter](../docs/1-toy.md), [file](toy.go)\n"
	if err := os.WriteFile(filepath.Join(stage.Dir, "README.md"), []byte(readme), 0o644); err != nil {
		t.Fatal(err)
	}
	own := stage.Copy(noMake)
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	if want := "[chapter](../../docs/1-toy.md), [file](toy.go)\n"; own.read(t, "README.md") != want {
		t.Errorf("expected %s\nfound %s", want, own.read(t, "README.md"))
	}
}

func TestAMessageIsShort(t *testing.T) {
	long := "begin" + strings.Repeat("ä", 5000) + "end"
	found := shorten(long + strings.Repeat("\nline", 60))
	lines := strings.Split(found, "\n")
	if len(lines) != mostLines+1 || lines[mostLines] != "(21 more lines)" || lines[1] != "line" {
		t.Errorf("found %d lines, the last of them %q", len(lines), lines[len(lines)-1])
	}
	if first := []rune(lines[0]); len(first) > longestLine+10 || !strings.HasPrefix(lines[0], "begin") || !strings.HasSuffix(lines[0], "end") {
		t.Errorf("the long line has %d letters: %s", len(first), lines[0])
	}
	dumped := "Unexpected error:\n    <*fmt.wrapError | 0xc000123456>: \n    exit status 1: no such field\n    \n    {\n        msg: \"exit status 1\",\n        err: {\n        },\n    }\noccurred"
	if found, want := shorten(dumped), "Unexpected error:\n    <*fmt.wrapError | 0xc000123456>: \n    exit status 1: no such field\noccurred"; found != want {
		t.Errorf("the fields of an error are left out: %q", found)
	}
	dumped = "Expected\n    <*errors.errorString | 0xc000123456>: \n    not found\n    {s: \"not found\"}\nto match"
	if found, want := shorten(dumped), "Expected\n    <*errors.errorString | 0xc000123456>: \n    not found\nto match"; found != want {
		t.Errorf("also on one line: %q", found)
	}
	if unchanged := "a\n  b"; shorten(unchanged) != unchanged {
		t.Errorf("changed %q to %q", unchanged, shorten(unchanged))
	}
}

func TestGoFilesAreOpenedFirst(t *testing.T) {
	names := []string{"b.go", "a.yaml", "z.md", "a.go"}
	slices.SortFunc(names, goFirst)
	if want := "a.go b.go a.yaml z.md"; strings.Join(names, " ") != want {
		t.Errorf("expected %s, found %v", want, names)
	}
}

func TestSolveTakesAFileThatIsNoGoCode(t *testing.T) {
	own := started(t)
	own.edit(t, "toy.go", "func add", "fnuc add")
	if _, kept, err := own.Solve("1.1"); err != nil || kept == "" {
		t.Fatalf("kept in %q: %v", kept, err)
	}
	if toy := own.read(t, "toy.go"); !strings.Contains(toy, "return a + b") {
		t.Errorf("not solved:\n%s", toy)
	}
}

func TestTheCommandToRepeatACheckIsForAShell(t *testing.T) {
	command := quoted([]string{"test", ".", "-run=^TestSync/(it_is_someone_else's)$"})
	output, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s|' `+command).Output()
	if want := "test|.|-run=^TestSync/(it_is_someone_else's)$|"; err != nil || string(output) != want {
		t.Errorf("expected %s\nfound %s: %v, from %s", want, output, err, command)
	}
}

func TestRefusals(t *testing.T) {
	stage := newToy(t)
	own := stage.Copy(noMake)
	expect := func(err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("expected an error with %q\nfound %v", text, err)
		}
	}
	_, err := own.CheckStep(t.Context(), "1.1")
	expect(err, "work/01-toy does not exist: `make stage-1 start` makes it")
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	expect(own.Start(), "exists already: go on with `make stage-1 check`")
	_, err = own.CheckStep(t.Context(), "1.9")
	expect(err, `stage 1 has no step "1.9": choose from 1.1, 1.2a, 1.2b`)
	_, _, err = own.Solve("1.2")
	expect(err, "section 1.2 has the steps 1.2a and 1.2b: name one, such as STEP=1.2a")
	if err := os.Remove(filepath.Join(own.Path, "go.mod")); err != nil {
		t.Fatal(err)
	}
	_, err = own.CheckStep(t.Context(), "1.1")
	expect(err, "has no go.mod: `make stage-1 reset` begins it anew, and keeps what is there")
	if err := os.RemoveAll(filepath.Join(own.Path, "toy.go")); err != nil {
		t.Fatal(err)
	}
	if _, err := own.Reset(); err != nil {
		t.Error(err)
	}
	empty := &Stage{Stage: stage.Stage, Root: stage.Root}
	expect(empty.Copy(noMake).Start(), "stage 1 has no exercises: ")
}

func TestAnotherCopyIsRemoved(t *testing.T) {
	own := started(t)
	list := filepath.Join(own.Root, "work", "go.work")
	content, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, append(content, "use ./02-removed\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, finding := own.check(t); finding == nil || finding.Unbuilt {
		t.Errorf("a folder of another stage that is gone: %+v", finding)
	}
	if now, err := os.ReadFile(list); err != nil || string(now) != string(content) {
		t.Errorf("the workspace lists a folder that is gone: %s %v", now, err)
	}
}

func TestPlayingTheCopy(t *testing.T) {
	own := started(t)
	played, err := chapter.Parse("c.md", []byte("```console\n$ go run ./01-toy && ls work/01-toy\n01-toy/toy.go\n```\n"+
		"## 1.1 A\n```console own=\"ls 01-toy\"\n$ false\n```\n## 1.2 B\n```console own=\"ls 01-toy\"\n$ false\n```\n"))
	if err != nil {
		t.Fatal(err)
	}
	own.Replace(played, "1.2")
	if earlier, last := played.Steps[1].Blocks[0].Commands[0].Text, played.Steps[2].Blocks[0].Commands[0].Text; earlier != "false" || last != "ls work/01-toy" {
		t.Errorf("what is run in an earlier section is %q, and in the last that is solved %q", earlier, last)
	}
	command := played.Steps[0].Blocks[0].Commands[0]
	if command.Text != "go run ./work/01-toy && ls work/01-toy" || strings.Join(command.Want, "") != "work/01-toy/toy.go" {
		t.Errorf("a command that names the stage became %q with the output %q", command.Text, command.Want)
	}
	workspace, err := own.WorkspaceInPlace()
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "./work/01-toy")
	list.Dir, list.Env = own.Root, append(os.Environ(), "GOWORK="+workspace)
	if output, err := list.CombinedOutput(); err != nil || strings.TrimSpace(string(output)) != own.Path {
		t.Errorf("go finds the copy in %s: %v", output, err)
	}
}

func TestSolvingBySection(t *testing.T) {
	own := newToy(t).Copy(noMake)
	var played []string
	err := own.SolveBySection(func(solved, next string) error {
		played = append(played, solved+" before "+next)
		if strings.Contains(own.read(t, "toy.go"), greetStub) != (solved == "1.1") {
			t.Errorf("with section %s solved: %s", solved, own.read(t, "toy.go"))
		}
		return nil
	})
	if err != nil || strings.Join(played, ", ") != "1.1 before 1.2, 1.2 before " {
		t.Errorf("played %q: %v", played, err)
	}
	if _, err := os.Stat(own.Path); err == nil {
		t.Error("the copy is left")
	}
	theirs := started(t)
	if err := theirs.SolveBySection(func(string, string) error { return nil }); err == nil {
		t.Error("a learner's copy was taken")
	}
	theirs.read(t, "toy.go")
}

func TestVerify(t *testing.T) {
	stage := newToy(t)
	var steps []string
	report := func(step Step, _, _ time.Duration, _ string) { steps = append(steps, step.ID) }
	if err := stage.Verify(t.Context(), noMake, report); err != nil || len(steps) != 3 {
		t.Fatalf("verified %v: %v", steps, err)
	}
	lenient := newToy(t)
	lenient.Steps[1].Checks[0].Run = "TestAdd"
	if err := lenient.Verify(t.Context(), noMake, report); err == nil || !strings.Contains(err.Error(), "step 1.2a, before it is solved: its check passes") {
		t.Errorf("a step without a check of its own: %v", err)
	}
	absent := newToy(t)
	absent.Steps[0].Checks[0].Run = "TestAbsent"
	if err := absent.Verify(t.Context(), noMake, report); err == nil || !strings.Contains(err.Error(), "no test ran") {
		t.Errorf("a check without a test: %v", err)
	}
	panicking := newToy(t)
	panicking.editTests(t, `t.Errorf("expected %d, found %d", sum, got)`, `panic("one is not one")`)
	if err := panicking.Verify(t.Context(), noMake, report); err == nil || !strings.Contains(err.Error(), "step 1.1, before it is solved: a test panics, instead of saying what is missing: TestAdd/one:\npanic: one is not one") {
		t.Errorf("a test that panics: %v", err)
	}
	for old, test := range map[string]struct{ replacement, wanted string }{
		"TestAdd/one:":                  {"TestAdd/two:", `step 1.1, before it is solved: the chapter shows that "TestAdd/two" fails, which it doesn't`},
		"a greeting, [..]":              {"a greeting", "step 1.2a, before it is solved: the chapter shows otherwise what the check finds:\nTestGreet:"},
		`found "hello"`:                 {"found \"hello\"\n          also: TestGreet", `step 1.2b, before it is solved: the chapter shows that "TestGreet" fails, too`},
		"```text\n$ make stage-1 check": {"```text\n$ make stage-2 check", "step 1.1: show before its box"},
	} {
		stale := newToy(t)
		stale.editChapter(t, old, test.replacement)
		if err := stale.Verify(t.Context(), noMake, report); err == nil || !strings.Contains(err.Error(), test.wanted) {
			t.Errorf("a chapter with %q instead of %q: %v", test.replacement, old, err)
		}
	}
}

// editChapter replaces text where it is first in the chapter, editTests where it is first in the stage's tests.
func (s *Stage) editChapter(t *testing.T, old, replacement string) {
	t.Helper()
	editFile(t, s.Chapter, old, replacement)
}

func (s *Stage) editTests(t *testing.T, old, replacement string) {
	t.Helper()
	editFile(t, filepath.Join(s.Dir, "toy_test.go"), old, replacement)
}

func editFile(t *testing.T, path, old, replacement string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, replacement, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

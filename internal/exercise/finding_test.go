package exercise

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/internal/quote"
)

func TestAFindingNamesTheFirstFailuresAndCountsTheRest(t *testing.T) {
	own := newToy(t).Copy(noMake)
	found := outcome{built: true, tests: make([]string, 9)}
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

func TestMessagesAreShortened(t *testing.T) {
	long := "begin" + strings.Repeat("ä", 5000) + "end"
	found := shorten(long + strings.Repeat("\nline", 60))
	lines := strings.Split(found, "\n")
	if len(lines) != mostLines+1 || lines[mostLines] != "(21 more lines)" || lines[1] != "line" {
		t.Errorf("expected %d lines and then the number of the others\nfound %d lines, the last of them %q", mostLines, len(lines), lines[len(lines)-1])
	}
	if first := []rune(lines[0]); len(first) > longestLine+10 || !strings.HasPrefix(lines[0], "begin") || !strings.HasSuffix(lines[0], "end") {
		t.Errorf("expected both ends of the long line, and at most %d letters\nfound %d: %s", longestLine+10, len(first), lines[0])
	}
	dumped := "Unexpected error:\n    <*fmt.wrapError | 0xc000123456>: \n    exit status 1: no such field\n    \n    {\n        msg: \"exit status 1\",\n        err: {\n        },\n    }\noccurred"
	if found, want := shorten(dumped), "Unexpected error:\n    <*fmt.wrapError | 0xc000123456>: \n    exit status 1: no such field\noccurred"; found != want {
		t.Errorf("the fields of an error must be left out: %q", found)
	}
	dumped = "Expected\n    <*errors.errorString | 0xc000123456>: \n    not found\n    {s: \"not found\"}\nto match"
	if found, want := shorten(dumped), "Expected\n    <*errors.errorString | 0xc000123456>: \n    not found\nto match"; found != want {
		t.Errorf("fields on one line must be left out, too: %q", found)
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

func TestTheCommandToRepeatACheckIsForAShell(t *testing.T) {
	command := quote.Args([]string{"test", ".", "-run=^TestSync/(it_is_someone_else's)$"})
	output, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s|' `+command).Output()
	if want := "test|.|-run=^TestSync/(it_is_someone_else's)$|"; err != nil || string(output) != want {
		t.Errorf("expected %s\nfound %s, error %v, from %s", want, output, err, command)
	}
}

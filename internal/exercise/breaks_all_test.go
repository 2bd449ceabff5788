package exercise

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheOldTextOfEachBreakOccursOnce needs no compiler, because it runs no checks. `make verify-exercises BREAKS=1` runs
// them.
func TestTheOldTextOfEachBreakOccursOnce(t *testing.T) {
	for _, stage := range realStages(t) {
		for _, change := range stage.Breaks {
			if _, _, err := stage.broken(change); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestBreaksCoverTheBehaviours checks the stages that list unbroken behaviours. For each behaviour of the test kit,
// they must have either a break or a reason for having none.
func TestBreaksCoverTheBehaviours(t *testing.T) {
	for _, stage := range realStages(t) {
		if len(stage.Unbroken) == 0 {
			continue // the stage has no operator, or no reasons yet
		}
		behaviours := behavioursOf(t, stage.Root)
		broken := map[string]bool{}
		for _, change := range stage.Breaks {
			broken[change.Name], broken[change.Check.Label] = true, true
		}
		for _, name := range behaviours {
			reason := stage.Unbroken[name]
			switch {
			case broken[name] && reason != "":
				t.Errorf("stage %d has a break for %s, but also a reason for having none", stage.Number, name)
			case !broken[name] && strings.TrimSpace(reason) == "":
				t.Errorf("stage %d has no break for %s: add one, or add the reason to unbroken", stage.Number, name)
			}
		}
		for name := range stage.Unbroken {
			if !slices.Contains(behaviours, name) {
				t.Errorf("stage %d: unbroken names %q, which is not a behaviour of the test kit", stage.Number, name)
			}
		}
	}
}

// behaviourName matches the line that names a behaviour. This package does not import the test kit, because compiling the
// kit takes a long time.
var behaviourName = regexp.MustCompile(`(?m)^\tname:\s+"([a-z-]+)",$`)

func behavioursOf(t *testing.T, root string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "operatortest", "behaviours", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range behaviourName.FindAllSubmatch(content, -1) {
			if !isTest(path) {
				names = append(names, string(match[1]))
			}
		}
	}
	if len(names) < 20 {
		t.Fatalf("found only %d behaviours: %v", len(names), names)
	}
	return names
}

package state

import (
	"errors"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"
)

// contextLines is the number of unchanged lines that a diff shows around the changed ones.
const contextLines = 3

// Diff shows, in YAML, what is expected (-) and what was found instead (+). It is empty if both are the same. A nil
// value has no lines.
func Diff(wanted, found any) string {
	if equality.Semantic.DeepEqual(wanted, found) {
		return ""
	}
	before, beforeErr := lines(wanted)
	after, afterErr := lines(found)
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: before, B: after, Context: contextLines})
	if err := errors.Join(beforeErr, afterErr, err); err != nil {
		return err.Error()
	}
	return strings.TrimRight(text, "\n")
}

func lines(value any) ([]string, error) {
	if value == nil {
		return nil, nil
	}
	content, err := yaml.Marshal(value)
	return slices.Collect(strings.Lines(string(content))), err
}

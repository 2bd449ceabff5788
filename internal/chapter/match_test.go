package chapter

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestMatch(t *testing.T) {
	tests := map[string]struct {
		want, got string // lines separated by |
		ok        bool
		wantIndex int // of the lines that differ first
		gotIndex  int
	}{
		"nothing":                                 {"", "", true, 0, 0},
		"equal lines":                             {"a|b", "a|b", true, 0, 0},
		"a line that differs":                     {"a|b|c", "a|x|c", false, 1, 1},
		"a line too few":                          {"a|b", "a", false, 1, 1},
		"a line too many":                         {"a", "a|b", false, 1, 1},
		"output where there must be none":         {"", "a", false, 0, 0},
		"white space at the end":                  {"a", "a \t", true, 0, 0},
		"white space at the start":                {"a", " a", false, 0, 0},
		"any text in the middle":                  {"a [..] c", "a bb c", true, 0, 0},
		"any text, even none":                     {"a[..]c", "ac", true, 0, 0},
		"any text at the start":                   {"[..]c", "a b c", true, 0, 0},
		"any text at the end":                     {"a [..]", "a ", true, 0, 0},
		"any text twice":                          {"a[..]b[..]c", "a1b2b3c", true, 0, 0},
		"any text is within a line":               {"a[..]b", "a|b", false, 0, 0},
		"any text can't overlap":                  {"ab[..]bc", "abc", false, 0, 0},
		"any text for an empty line":              {"a|[..]|b", "a||b", true, 0, 0},
		"any lines alone, for none":               {"...", "", true, 0, 0},
		"any lines alone":                         {"...", "a|b", true, 0, 0},
		"any lines at the start":                  {"...|c", "a|b|c", true, 0, 0},
		"any lines in the middle":                 {"a|...|c", "a|b|b|c", true, 0, 0},
		"any lines in the middle, for none":       {"a|...|c", "a|c", true, 0, 0},
		"any lines at the end":                    {"a|...", "a|b|c", true, 0, 0},
		"any lines that must reach further":       {"a|...|b|c", "a|b|x|b|c", true, 0, 0},
		"any lines, then a line too many":         {"...|b", "a|b|c", false, 2, 2},
		"any lines, then a line that never comes": {"a|...|c", "a|b|b", false, 2, 3},
		"any lines twice":                         {"...|b|...|d", "a|b|c|d", true, 0, 0},
		"any lines twice, the second wrong":       {"...|b|...|d|e", "a|b|c|d|x", false, 4, 4},
		"dots with an indent are literal":         {" ...", "a", false, 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			wantIndex, gotIndex, ok := Match(lines(test.want), lines(test.got))
			g.Expect(ok).To(Equal(test.ok))
			g.Expect([]int{wantIndex, gotIndex}).To(Equal([]int{test.wantIndex, test.gotIndex}))
		})
	}
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "|")
}

package snippet

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const stepsSource = `steps:
- {id: "1.1", title: A, task: A., hints: [a], minutes: 1, checks: [{run: A}]}
- {id: "1.2", title: B, task: B., hints: [b], minutes: 1, checks: [{run: B}]}
- {id: "1.3", title: C, task: C., hints: [c], minutes: 1, checks: [{run: C}]}
`

const steppedSource = `package p

// count counts.
//
//workshop:step 1.1
func count() int {
	sum := 0
	sum += 1
	sum += 2
	sum += 3
	sum += 4
	//workshop:until 1.2 sum += 5
	//workshop:step 1.2
	sum += 6
	sum += 7
	sum += 8
	sum += 9
	sum += 10
	sum += 11
	sum += 12
	sum += 13
	sum += 14 //workshop:step 1.2
	return sum
}

// late is only there after its step.
//
//workshop:step 1.3
type late int
`

func TestDiffShowsWhatAStepChanges(t *testing.T) {
	tests := map[string]struct{ words, want string }{
		"lines of a function, with a gap": {"symbol=count step=1.2",
			" \tsum += 2\n \tsum += 3\n \tsum += 4\n-\tsum += 5\n+\tsum += 6\n \tsum += 7\n \tsum += 8\n \tsum += 9\n" +
				"@@\n \tsum += 11\n \tsum += 12\n \tsum += 13\n+\tsum += 14\n \treturn sum\n }"},
		"a type that was not there": {"symbol=late step=1.3", "+// late is only there after its step.\n+type late int"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			root, path := repository(t, "```diff file=01-p/p.go "+test.words+"\n```\n")
			g.Expect(Fill(root, path)).To(BeTrue())
			text, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(text)).To(Equal("```diff file=01-p/p.go " + test.words + "\n" + test.want + "\n```\n"))
			g.Expect(Check(root, path)).To(Succeed())
		})
	}
	for name, test := range map[string]struct{ words, want string }{
		"a step that changes something else": {"symbol=count step=1.3", "step 1.3 does not change 01-p/p.go at count"},
		"a symbol that does not exist":       {"symbol=none step=1.2", "has no symbol none"},
		"a step that does not exist":         {"symbol=count step=1.9", `stage 1 has no step "1.9"`},
	} {
		t.Run(name, func(t *testing.T) {
			root, path := repository(t, "```diff file=01-p/p.go "+test.words+"\n```\n")
			NewWithT(t).Expect(Check(root, path)).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestDiffIsShort(t *testing.T) {
	g := NewWithT(t)
	g.Expect(diff([]string{"a", "b", "c"}, []string{"a", "x", "c"})).To(Equal("    - b\n    + x"))
	g.Expect(diff(strings.Split("abcdefghij", ""), nil)).To(Equal("    - a\n    - b\n    - c\n    - d\n    - e\n    - f\n    - g\n    - h\n    - (2 more lines)"))
}

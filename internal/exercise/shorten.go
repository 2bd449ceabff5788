package exercise

import (
	"fmt"
	"regexp"
	"strings"
)

// longestLine and mostLines bound the message of a test: a library may print a whole object in Go's notation.
const longestLine, mostLines = 400, 40

// shownError is how Gomega begins to show an error. The message follows, and then its fields in braces.
var shownError = regexp.MustCompile(`^( *)<\*\S+ \| 0x[0-9a-f]+>:\s*$`)

// withoutFields removes the fields of errors, and the empty line before them.
func withoutFields(lines []string) []string {
	var kept []string
	indent, inFields := "", false
	for _, line := range lines {
		if begin := shownError.FindStringSubmatch(line); begin != nil && !inFields {
			indent = begin[1]
		}
		text, indented := strings.CutPrefix(line, indent)
		switch {
		case inFields:
			inFields = !indented || !strings.HasPrefix(text, "}")
		case indent != "" && indented && strings.HasPrefix(text, "{"):
			inFields = !strings.HasSuffix(strings.TrimSpace(text), "}")
			for len(kept) > 0 && strings.TrimSpace(kept[len(kept)-1]) == "" {
				kept = kept[:len(kept)-1]
			}
		default:
			kept = append(kept, line)
		}
	}
	return kept
}

// shorten removes what Gomega shows of an error besides its message, the middle of long lines, whose ends say what
// failed and why, and the lines after the first mostLines.
func shorten(message string) string {
	lines := withoutFields(strings.Split(strings.TrimSpace(message), "\n"))
	for i, line := range lines {
		if letters := []rune(line); len(letters) > longestLine {
			lines[i] = string(letters[:longestLine/2]) + " [...] " + string(letters[len(letters)-longestLine/2:])
		}
	}
	if more := len(lines) - mostLines; more > 0 {
		lines = append(lines[:mostLines], fmt.Sprintf("(%d more lines)", more))
	}
	return strings.Join(lines, "\n")
}

func firstLines(text string, most int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[:min(len(lines), most)], "\n")
}

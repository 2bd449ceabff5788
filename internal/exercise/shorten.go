package exercise

import (
	"fmt"
	"regexp"
	"strings"
)

// longestLine and mostLines limit a test's message, because a library may print a whole object as a Go value.
const longestLine, mostLines = 400, 40

// shownError matches the first line of what Gomega prints for an error that is a pointer. The error's message follows,
// and then its fields in braces.
var shownError = regexp.MustCompile(`^( *)<\*\S+ \| 0x[0-9a-f]+>:\s*$`)

// withoutFields removes the fields of errors, and the empty lines before them.
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

// shorten shortens a test's message. It removes the fields that Gomega prints below an error's message, the lines after
// the first mostLines, and the middle of long lines, because their two ends say what failed and why.
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

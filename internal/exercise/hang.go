package exercise

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
)

// frame matches a function and its place in a goroutine's stack.
var frame = regexp.MustCompile(`(?m)^(\S.*)\([^\n]*\)\n\s+(/.+\.go):(\d+)`)

// mostFrames is how many lines of a stack a finding shows.
const mostFrames = 12

// ended describes tests that timed out or panicked: the first place in the learner's code, without tests, on a goroutine's stack, and the
// top of that stack. The place is empty if there is none.
func (c *Copy) ended(output string) (place, description string) {
	blocks := strings.Split(output, "\n\n")
	why := "it panics"
	if strings.Contains(output, "panic: test timed out") {
		why = "it does not end"
	}
	for _, block := range blocks {
		if !strings.HasPrefix(strings.TrimSpace(block), "goroutine ") {
			continue
		}
		for _, match := range frame.FindAllStringSubmatch(block, -1) {
			rest, inside := strings.CutPrefix(match[2], c.Path+"/")
			if !inside || !fs.ValidPath(rest) || isTest(rest) {
				continue
			}
			place = c.relative(match[2]) + ":" + c.lineInFunction(match[2], match[3], match[1])
			stack := strings.ReplaceAll(firstLines(block, mostFrames), c.Path, c.name())
			return place, fmt.Sprintf("%s: see %s\n%s\n%s", why, place, panicMessage(output), stack)
		}
	}
	return "", ""
}

// panicMessage returns the lines from the first that tells of a panic or a fatal error to the next empty line.
func panicMessage(output string) string {
	at := panicked.FindStringIndex(output)
	if at == nil {
		return ""
	}
	message, _, _ := strings.Cut(output[at[0]:], "\n\n")
	return firstLines(message, mostFrames)
}

// lineInFunction returns the line of a frame. The compiler can lose the lines of a loop that does nothing, and says 1: then it is the
// line where the function is declared.
func (c *Copy) lineInFunction(file, line, function string) string {
	content, err := os.ReadFile(file)
	if err != nil || line != "1" {
		return line
	}
	_, name, _ := strings.Cut(path.Base(function), ".")
	name, _, _ = strings.Cut(strings.NewReplacer("(*", "", ")", "").Replace(name), ".func")
	declared, err := byName(content)
	found, is := declared[name]
	if err != nil || !is {
		return line
	}
	return fmt.Sprint(1 + strings.Count(string(content[:found.start]), "\n"))
}

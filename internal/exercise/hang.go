package exercise

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// frame matches a function in a goroutine's stack. Its groups are the file and the line.
var frame = regexp.MustCompile(`(?m)^\S.*\([^\n]*\)\n\s+(/.+\.go):(\d+)`)

// mostFrames is the maximum number of lines that a finding shows of a stack or of a panic's message.
const mostFrames = 12

// ended finds where tests timed out or panicked. It returns the first place in the learner's code, outside tests, on a
// goroutine's stack, and a description with the top of that stack. If there is no such place, both are empty.
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
			if !c.isOwn(match[1]) {
				continue
			}
			place = c.relative(match[1]) + ":" + match[2]
			stack := strings.ReplaceAll(firstLines(block, mostFrames), c.Path, c.name())
			return place, fmt.Sprintf("%s: see %s\n%s\n%s", why, place, panicMessage(output), stack)
		}
	}
	return "", ""
}

// panicMessage returns the first report of a panic or a fatal error, up to the next empty line, but at most mostFrames
// lines. If there is no such report, it returns "".
func panicMessage(output string) string {
	at := panicked.FindStringIndex(output)
	if at == nil {
		return ""
	}
	message, _, _ := strings.Cut(output[at[0]:], "\n\n")
	return firstLines(message, mostFrames)
}

// progressReport says where goroutines were at one moment during a spec.
type progressReport struct {
	Goroutines []goroutine
}

type goroutine struct {
	State string
	Stack []call
}

type call struct {
	Function, Filename string
	Line               int
}

// atWork matches the states of goroutines that are running, or that wait for something that may never happen. It
// doesn't match those of an operator at rest, which waits for its queue.
var atWork = regexp.MustCompile(`^(running|runnable|sync\.(RW)?Mutex\.|select \(no cases\)|chan (send|receive) \(nil chan\))`)

// stuck looks for a function of the learner's in which a goroutine was at work in most reports of a failed spec, and in
// at least two. It returns a place in that function, and a description. If there is no such function, both are empty.
// Fewer reports prove nothing: on a busy machine, even a goroutine that mostly sleeps is runnable in some reports.
func (c *Copy) stuck(progress [][]progressReport) (place, description string) {
	for _, reports := range progress {
		seen := map[string]int{}
		for _, report := range reports {
			busy := map[string]bool{}
			for _, goroutine := range report.Goroutines {
				call, found := c.ownCall(goroutine)
				if !found || !atWork.MatchString(goroutine.State) || busy[call.Function] {
					continue
				}
				busy[call.Function] = true
				seen[call.Function]++
				if n := seen[call.Function]; n > 1 && n > len(reports)/2 {
					place = c.relative(call.Filename) + ":" + fmt.Sprint(call.Line)
					return place, fmt.Sprintf("meanwhile, a goroutine did not leave %s (%s): see %s", path.Base(call.Function), goroutine.State, place)
				}
			}
		}
	}
	return "", ""
}

// ownCall returns a goroutine's innermost call in the learner's code, outside tests, and whether there is one.
func (c *Copy) ownCall(goroutine goroutine) (call, bool) {
	for _, call := range goroutine.Stack {
		if c.isOwn(call.Filename) {
			return call, true
		}
	}
	return call{}, false
}

// isOwn reports whether a file that a stack names is in the copy and is not a test.
func (c *Copy) isOwn(file string) bool {
	rest, inside := strings.CutPrefix(file, c.Path+"/")
	return inside && fs.ValidPath(rest) && !isTest(rest)
}

package play

import (
	"regexp"
	"slices"
	"strings"
)

// ansiCode matches the escape sequences for colours, cursor movements and titles.
var ansiCode = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\^_])")

func stripANSI(text string) string { return ansiCode.ReplaceAllString(text, "") }

// endedWatch matches a line that kubectl may log when it ends a watch because the awaited condition is met or the time
// is up. client-go v0.37 can mistake the end of the watch for an error.
var endedWatch = regexp.MustCompile(`^[IWE]\d{4} [\d:.]+ +\d+ reflector\.go:\d+\] "Warning: watch ended with error" .*context (canceled|deadline exceeded)`)

// outputLines splits real output into lines, and prepares them for comparison with a chapter's: it removes escape
// sequences, trailing blank lines, and what kubectl logs about watches that it has ended.
func outputLines(output string) []string {
	lines := strings.Split(strings.ReplaceAll(stripANSI(output), "\r\n", "\n"), "\n")
	lines = slices.DeleteFunc(lines, endedWatch.MatchString)
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

package play

import (
	"regexp"
	"slices"
	"strings"
)

// ansiCode matches the escape sequences for colours, cursor movements and titles.
var ansiCode = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\^_])")

func stripANSI(text string) string { return ansiCode.ReplaceAllString(text, "") }

// endedWatch matches a line that kubectl logs now and then when it ends a watch itself, because what it waited for has
// happened or its time is up: client-go v0.37 can take the end for an error.
var endedWatch = regexp.MustCompile(`^[IWE]\d{4} [\d:.]+ +\d+ reflector\.go:\d+\] "Warning: watch ended with error" .*context (canceled|deadline exceeded)`)

// outputLines returns a command's real output as it is compared: as lines, without colours, trailing blank lines and
// what kubectl logs about watches that it has ended.
func outputLines(output string) []string {
	lines := strings.Split(strings.ReplaceAll(stripANSI(output), "\r\n", "\n"), "\n")
	lines = slices.DeleteFunc(lines, endedWatch.MatchString)
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

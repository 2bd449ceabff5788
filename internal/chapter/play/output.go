package play

import (
	"regexp"
	"strings"
)

// ansiCode matches the escape sequences for colours, cursor movements and titles.
var ansiCode = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\^_])")

func stripANSI(text string) string { return ansiCode.ReplaceAllString(text, "") }

// outputLines returns a command's real output as it is compared: as lines, without colours and trailing blank lines.
func outputLines(output string) []string {
	lines := strings.Split(strings.ReplaceAll(stripANSI(output), "\r\n", "\n"), "\n")
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

package chapter

import (
	"regexp"
	"strings"
)

const (
	anyText  = "[..]"
	anyLines = "..."
)

// Match compares the expected lines with the actual ones. When they differ, it returns the index of the first expected
// line that can't be found, and the index of the actual line found in its place. An index past the last line means the
// end.
func Match(want, got []string) (wantIndex, gotIndex int, ok bool) {
	w, g := 0, 0
	// dots is the last "..." so far, and reach is the actual line up to which it matches. After a mismatch, only this
	// "..." may have to match more lines.
	dots, reach := -1, 0
	for w < len(want) || g < len(got) {
		switch {
		case w < len(want) && want[w] == anyLines:
			dots, reach = w, g
			w++
			continue
		case w < len(want) && g < len(got) && matchLine(want[w], got[g]):
			w++
			g++
			continue
		}
		if w > wantIndex || (w == wantIndex && g > gotIndex) {
			wantIndex, gotIndex = w, g
		}
		if dots < 0 || reach >= len(got) {
			return wantIndex, gotIndex, false
		}
		reach++
		w, g = dots+1, reach
	}
	return 0, 0, true
}

// matchLine compares one line; [..] matches any text, including none.
func matchLine(want, got string) bool {
	if !strings.HasSuffix(want, anyText) {
		// Readers can't see trailing white space, so ignore it, except where a final [..] may match it.
		got = strings.TrimRight(got, " \t")
	}
	if want == got {
		return true
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), regexp.QuoteMeta(anyText), ".*")
	// MatchString fails if the expected line is not valid UTF-8.
	matches, err := regexp.MatchString("^(?s:"+pattern+")$", got)
	return err == nil && matches
}

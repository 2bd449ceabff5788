package chapter

import (
	"regexp"
	"strings"
)

// item is what matters of a Markdown file to this package: a heading, or a fence.
type item struct {
	line  int
	level int    // of the heading; 0 for a fence
	title string // of the heading
	fence *fence
}

// fence is a fenced code block. Its body has lost the indentation of the fence.
type fence struct {
	line   int // of the opening fence
	indent int
	mark   string // the opening run of ` or ~
	info   string
	body   []string
}

var (
	headingLine   = regexp.MustCompile(`^ {0,3}(#{1,6})(?:[ \t]+(.*))?$`)
	closingHashes = regexp.MustCompile(`(?:^|[ \t]+)#+[ \t]*$`)
	fenceLine     = regexp.MustCompile("^([ \t]*)(`{3,}|~{3,})[ \t]*(.*?)[ \t]*$")
	// containerPrefix is what CommonMark allows in front of a fence and this package does not: a fence it would
	// overlook must be refused, or its commands would silently not be played.
	containerPrefix = regexp.MustCompile(`^[ \t]*(?:>[ \t]?|(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)+`)
)

// splitLines returns the lines of text without their ends, be they LF or CRLF.
func splitLines(text string) []string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// scanMarkdown finds the headings and fences of a Markdown file, in order.
func scanMarkdown(text string, problems *problemList) []item {
	var items []item
	lines := splitLines(text)
	for i := 0; i < len(lines); i++ {
		number := i + 1
		if strings.HasPrefix(strings.TrimLeft(lines[i], " "), "<!--") {
			end := commentEnd(lines, i)
			if end == len(lines) {
				problems.add(number, "this comment is never closed: write --> at its end")
			}
			i = end
			continue
		}
		if m := headingLine.FindStringSubmatch(lines[i]); m != nil {
			title := strings.TrimSpace(closingHashes.ReplaceAllString(m[2], ""))
			items = append(items, item{line: number, level: len(m[1]), title: title})
			continue
		}
		if f := openFence(lines[i], number, problems); f != nil {
			i = f.readBody(lines, i+1, problems)
			items = append(items, item{line: number, fence: f})
			continue
		}
		if prefix := containerPrefix.FindString(lines[i]); prefix != "" && isFence(lines[i][len(prefix):]) {
			problems.add(number, "a fence can't start behind a list marker or a > sign: give it a line of its own")
		}
	}
	return items
}

// commentEnd returns the index of the line that closes the HTML comment which starts at lines[start], or len(lines).
func commentEnd(lines []string, start int) int {
	for i := start; i < len(lines); i++ {
		line := lines[i]
		if i == start {
			_, line, _ = strings.Cut(line, "<!--")
		}
		if strings.Contains(line, "-->") {
			return i
		}
	}
	return len(lines)
}

func isFence(line string) bool {
	m := fenceLine.FindStringSubmatch(line)
	// The info string of a backtick fence has no backtick; with one, the line is code within a paragraph.
	return m != nil && (m[2][0] == '~' || !strings.Contains(m[3], "`"))
}

func openFence(line string, number int, problems *problemList) *fence {
	if !isFence(line) {
		return nil
	}
	m := fenceLine.FindStringSubmatch(line)
	if strings.Contains(m[1], "\t") {
		problems.add(number, "this fence is indented with a tab: use spaces")
		return &fence{line: number, mark: m[2]}
	}
	return &fence{line: number, indent: len(m[1]), mark: m[2], info: m[3]}
}

// readBody reads the fence's lines from lines[start] on and returns the index of the closing fence.
func (f *fence) readBody(lines []string, start int, problems *problemList) int {
	for i := start; i < len(lines); i++ {
		if f.closedBy(lines[i]) {
			return i
		}
		text := strings.TrimLeft(lines[i], " ")
		if indent := len(lines[i]) - len(text); indent >= f.indent {
			text = lines[i][f.indent:]
		} else if strings.TrimSpace(text) != "" {
			problems.add(i+1, "this line is indented less than its fence, which opened in line %d", f.line)
		}
		f.body = append(f.body, text)
	}
	problems.add(f.line, "this fence is never closed: write %s on a line of its own at its end", f.mark)
	return len(lines)
}

func (f *fence) closedBy(line string) bool {
	m := fenceLine.FindStringSubmatch(line)
	return m != nil && m[3] == "" && m[2][0] == f.mark[0] && len(m[2]) >= len(f.mark) && len(m[1]) <= f.indent+3
}

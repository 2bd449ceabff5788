package form

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Steps says which steps are done in a form.
type Steps interface {
	// Pending reports whether a step is not done yet in this form. It returns an error if there is no such step.
	Pending(id string) (bool, error)
	// Title says what the step is about, without a full stop.
	Title(id string) string
}

// Derive returns a file's form, and whether the file exists yet: it may come with a later step.
func Derive(name string, source []byte, steps Steps) (derived []byte, exists bool, err error) {
	if !bytes.Contains(source, []byte("workshop:")) {
		return source, true, nil
	}
	switch path.Ext(name) {
	case ".go":
		derived, exists, err = deriveGo(name, source, steps)
	case ".yaml", ".yml":
		derived, exists, err = deriveYAML(source, steps)
	default:
		return source, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	return derived, exists, nil
}

// given matches the mark of a file that learners are given.
var given = regexp.MustCompile(`(?m)^(//|# )workshop:given `)

// Given reports whether a finished file is one that learners are given, and need not write.
func Given(source []byte) bool { return given.Match(source) }

// mark is a comment that says which step something belongs to.
type mark struct {
	word, step, text string
	pending          bool
}

// markText matches a mark without the characters that begin a comment.
var markText = regexp.MustCompile(`^workshop:([a-z]+) (\S+)(?: (.*))?$`)

// parseMark parses a comment, without its // or #, as a mark. It returns nil if the comment does not begin with
// "workshop:".
func parseMark(comment string, steps Steps) (*mark, error) {
	if !strings.HasPrefix(comment, "workshop:") {
		return nil, nil
	}
	match := markText.FindStringSubmatch(comment)
	if match == nil {
		return nil, fmt.Errorf("%q is not a mark: write workshop:step, workshop:until, workshop:between, workshop:markers, workshop:file or workshop:given, a space, and the ID of a step", comment)
	}
	switch match[1] {
	case "step", "until", "markers", "file", "given", "between":
	default:
		return nil, fmt.Errorf("%q: the marks are workshop:step, workshop:until, workshop:between, workshop:markers, workshop:file and workshop:given", comment)
	}
	pending, err := steps.Pending(match[2])
	if match[1] == "given" {
		match[1] = "file"
	}
	found := &mark{word: match[1], step: match[2], text: match[3], pending: pending}
	if err == nil && found.word == "between" {
		end, text, _ := strings.Cut(found.text, " ")
		over, err := steps.Pending(end)
		return &mark{word: "until", step: end, text: text, pending: !pending && over}, err
	}
	return found, err
}

// lines contains a file's lines, and what replaces some of them. A nil replacement drops the line.
type lines struct {
	text     []string
	replaced map[int]*string
}

func newLines(source []byte) *lines {
	return &lines{text: strings.Split(string(source), "\n"), replaced: map[int]*string{}}
}

// drop removes the lines from first to last. Lines count from 1.
func (l *lines) drop(first, last int) {
	for line := first; line <= last; line++ {
		l.replaced[line] = nil
	}
}

// put replaces a line with text, which may have several lines.
func (l *lines) put(line int, text string) { l.replaced[line] = &text }

func (l *lines) dropped(line int) bool {
	text, replaced := l.replaced[line]
	return replaced && text == nil
}

// indentation returns the white space at the beginning of a line.
func (l *lines) indentation(line int) string {
	text := l.text[line-1]
	return text[:len(text)-len(strings.TrimLeft(text, " \t"))]
}

func (l *lines) String() string {
	kept := make([]string, 0, len(l.text))
	for i, text := range l.text {
		replacement, replaced := l.replaced[i+1]
		switch {
		case text == "" && l.dropped(i) && len(kept) > 0 && strings.HasSuffix(kept[len(kept)-1], "{"):
			// the paragraph above this empty line was dropped
		case !replaced:
			kept = append(kept, text)
		case replacement != nil:
			kept = append(kept, *replacement)
		}
	}
	return strings.Join(kept, "\n")
}

// Finished returns a file without its marks.
func Finished(name string, source []byte) ([]byte, error) {
	finished, _, err := Derive(name, source, allDone{})
	return finished, err
}

// allDone says that all steps are done, as in a finished file.
type allDone struct{}

func (allDone) Pending(string) (bool, error) { return false, nil }

func (allDone) Title(string) string { return "" }

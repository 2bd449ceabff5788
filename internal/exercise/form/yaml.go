package form

import (
	"fmt"
	"strings"
)

func deriveYAML(source []byte, steps Steps) (derived []byte, exists bool, err error) {
	file := newLines(source)
	for i, text := range file.text {
		line := i + 1
		comment, found := strings.CutPrefix(strings.TrimSpace(text), "# ")
		if !found || file.dropped(line) {
			continue
		}
		marked, err := parseMark(comment, steps)
		if err != nil {
			return nil, false, fmt.Errorf("line %d: %w", line, err)
		}
		if marked == nil {
			continue
		}
		switch {
		case marked.word == "file" && marked.pending:
			return nil, false, nil
		case marked.word == "until" && marked.pending:
			file.put(line, file.indentation(line)+marked.text)
		case marked.word == "step" && marked.pending:
			last, err := file.node(line + 1)
			if err != nil {
				return nil, false, err
			}
			file.drop(line, last)
			if marked.text != "" {
				file.put(line, file.indentation(line)+"# Step "+marked.step+": "+marked.text)
			}
		default:
			file.drop(line, line)
		}
	}
	return []byte(file.String()), true, nil
}

// node returns the last line of the key or list element that begins at line first or, if that line is a comment, at the
// next line that is not.
func (l *lines) node(first int) (last int, err error) {
	for first <= len(l.text) && strings.HasPrefix(strings.TrimSpace(l.text[first-1]), "#") {
		first++
	}
	if first > len(l.text) || strings.TrimSpace(l.text[first-1]) == "" {
		return 0, fmt.Errorf("line %d: expected a key or a list element below a mark", first)
	}
	return LastLine(l.text, first), nil
}

// LastLine returns the last line of the key or list element that begins at line first of a YAML file. The lines below
// that are indented more than line first belong to it, and so do the elements of a list with the same indentation as
// its key. Lines count from 1.
func LastLine(lines []string, first int) int {
	depth := Depth(lines[first-1])
	isElement := isListElement(strings.TrimSpace(lines[first-1]))
	last := first
	for line := first + 1; line <= len(lines); line++ {
		text := strings.TrimSpace(lines[line-1])
		if text == "" {
			continue
		}
		deeper := Depth(lines[line-1]) > depth
		if !deeper && strings.HasPrefix(text, "#") {
			continue // the comment belongs to what follows
		}
		// A list may have the same indentation as its key.
		listed := !isElement && Depth(lines[line-1]) == depth && isListElement(text)
		if !deeper && !listed {
			break
		}
		last = line
	}
	return last
}

// Depth returns the number of spaces at the beginning of a line.
func Depth(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func isListElement(text string) bool { return text == "-" || strings.HasPrefix(text, "- ") }

package exercise

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// boxEnd is the line that closes a step's box in a chapter.
const boxEnd = "<!-- end of your turn -->"

// boxBegin returns the line that opens a step's box in a chapter.
func boxBegin(step Step) string { return "<!-- your turn " + step.ID + " -->\n" }

// FillBoxes writes each step's box into the text of the chapter, between two comments:
//
//	<!-- your turn 2.9a -->
//	<!-- end of your turn -->
//
// FillBoxes returns an error unless each step has exactly one box, each box has a step, and the chapter has above each
// box a code block with what the step's check finds before the step is solved. Verify checks the block's content.
func (s *Stage) FillBoxes(chapter string) (string, error) {
	filled := chapter
	var problems []error
	for at, step := range s.Steps {
		begin := boxBegin(step)
		before, rest, found := strings.Cut(filled, begin)
		_, after, ends := strings.Cut(rest, boxEnd)
		if !found || !ends || strings.Contains(after, begin) {
			problems = append(problems, fmt.Errorf("step %s must have one box in the chapter: put %s and %s where the learner should do the step", step.ID, strings.TrimSpace(begin), boxEnd))
			continue
		}
		box, err := s.box(at)
		if err != nil {
			return "", err
		}
		filled = before + begin + box + boxEnd + after
		if _, err := s.shown(chapter, step); err != nil {
			problems = append(problems, err)
		}
	}
	if boxes := strings.Count(filled, "<!-- your turn "); boxes > len(s.Steps) {
		problems = append(problems, fmt.Errorf("the chapter has %d boxes for %d steps", boxes, len(s.Steps)))
	}
	return filled, errors.Join(problems...)
}

func (s *Stage) box(at int) (string, error) {
	step := s.Steps[at]
	changed, err := s.declarationsOf(at)
	if err != nil {
		return "", err
	}
	var files []string
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		files = append(files, "`"+name+"`")
	}
	task := strings.ReplaceAll(strings.TrimSpace(step.Task), "\n", " ")
	text := fmt.Sprintf("**Your turn, step %s: %s** (%d minutes). %s\n", step.ID, step.Title, step.Minutes, task) +
		fmt.Sprintf("Work in %s, then run `make stage-%d check`.", list(files), s.Number)
	var box strings.Builder
	for line := range strings.Lines(wrap(text, lineLength-2)) {
		box.WriteString("> " + strings.TrimRight(line, "\n") + "\n")
	}
	return "\n" + box.String() + "\n", nil
}

// list joins words with commas and a final "and".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// lineLength is the maximum length of a line in a chapter's boxes and paragraphs.
const lineLength = 120

// word matches text that must stay on one line: a word, or code in backquotes, which may contain spaces.
var word = regexp.MustCompile("[^\\s`]*(`[^`]*`[^\\s`]*)+|\\S+")

// Wrapped breaks a task or a hint into lines of at most lineLength. It ignores the line breaks that the text already
// has.
func Wrapped(text string) string {
	return wrap(strings.ReplaceAll(text, "\n", " "), lineLength)
}

// wrap breaks text into lines at spaces.
func wrap(text string, length int) string {
	var lines []string
	line := ""
	for _, word := range word.FindAllString(text, -1) {
		if line != "" && len(line)+1+len(word) > length {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimLeft(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n")
}

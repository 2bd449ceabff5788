package play

import (
	"context"
	"fmt"
	"strings"

	"example.com/operator-workshop/internal/chapter"
)

const (
	// sectionLines bounds how many lines each section of a failure shows.
	sectionLines = 40
	unmarked     = -1
)

// Failure is the error when a play fails at a command, for example because the output differs from the chapter's.
type Failure struct {
	// Place is the line of the command in the chapter: path:line.
	Place string
	// Step is the number of the chapter's step that was played or, if it has none, of the last step before it that has
	// one. It is "" if there is no such step.
	Step string
	// Text says in several lines what was expected and what happened instead.
	Text string
}

func (f *Failure) Error() string { return f.Place + ": " + f.Text }

// failure returns the error for a command, with a headline and sections that show, for example, what it printed.
func (p *playing) failure(command *chapter.Command, headline string, sections ...string) *Failure {
	return &Failure{
		Place: fmt.Sprintf("%s:%d", p.chapter.Path, command.Line),
		Step:  p.number,
		Text:  strings.Join(append([]string{headline, indent("$ " + command.Text)}, sections...), "\n"),
	}
}

func (p *playing) interrupted(ctx context.Context, command *chapter.Command) error {
	return fmt.Errorf("%s:%d: interrupted: %w\n%s", p.chapter.Path, command.Line, ctx.Err(), indent("$ "+command.Text))
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

// section shows lines under a title: those around the marked line or, if none is marked, the last ones. An index past
// the last line marks the end.
func section(title string, lines []string, marked int) string {
	first, last := len(lines)-sectionLines, len(lines)
	if marked != unmarked {
		first, last = marked-sectionLines/2, min(len(lines), marked+sectionLines/2)
	} else if len(lines) == 0 {
		return title + ": nothing"
	}
	shown := []string{title + ":"}
	if first = max(0, first); first > 0 {
		shown = append(shown, fmt.Sprintf("    (%s before)", plural(first, "line")))
	}
	for i := first; i < last; i++ {
		prefix := "    "
		if i == marked {
			prefix = "  > "
		}
		shown = append(shown, strings.TrimRight(prefix+lines[i], " \t"))
	}
	if marked >= len(lines) {
		shown = append(shown, "  > (no more lines)")
	}
	if hidden := len(lines) - last; hidden > 0 {
		shown = append(shown, fmt.Sprintf("    (%s after)", plural(hidden, "line")))
	}
	return strings.Join(shown, "\n")
}

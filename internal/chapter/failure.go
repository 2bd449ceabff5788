package chapter

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// sectionLines bounds how many lines of output a failure shows.
const sectionLines = 40

// failure makes the error for a command: where it stands, what is wrong, the command, and what there is to look at.
func (p *play) failure(command *Command, headline string, sections ...string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s:%d: %s\n%s", p.chapter.Path, command.Line, headline, indent("$ "+command.Text))
	for _, section := range sections {
		text.WriteString("\n" + section)
	}
	return errors.New(text.String())
}

func (p *play) interrupted(ctx context.Context, command *Command) error {
	return fmt.Errorf("%s:%d: interrupted: %w\n%s", p.chapter.Path, command.Line, ctx.Err(), indent("$ "+command.Text))
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

// section shows the end of some output under a title.
func section(title string, lines []string) string {
	if len(lines) == 0 {
		return title + ": nothing"
	}
	var text strings.Builder
	text.WriteString(title + ":")
	if hidden := len(lines) - sectionLines; hidden > 0 {
		fmt.Fprintf(&text, "\n    (%s before)", plural(hidden, "line"))
		lines = lines[hidden:]
	}
	for _, line := range lines {
		text.WriteString("\n" + strings.TrimRight("    "+line, " \t"))
	}
	return text.String()
}

// markedSection shows the lines around one that is marked; an index behind the last line marks the end.
func markedSection(title string, lines []string, marked int) string {
	var text strings.Builder
	text.WriteString(title + ":")
	first := max(0, marked-sectionLines/2)
	last := min(len(lines), marked+sectionLines/2)
	if first > 0 {
		fmt.Fprintf(&text, "\n    (%s before)", plural(first, "line"))
	}
	for i := first; i < last; i++ {
		prefix := "    "
		if i == marked {
			prefix = "  > "
		}
		text.WriteString("\n" + strings.TrimRight(prefix+lines[i], " \t"))
	}
	if marked >= len(lines) {
		text.WriteString("\n  > (no more lines)")
	}
	if hidden := len(lines) - last; hidden > 0 {
		fmt.Fprintf(&text, "\n    (%s after)", plural(hidden, "line"))
	}
	return text.String()
}

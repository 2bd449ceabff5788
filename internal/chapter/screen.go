package chapter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	// typingLimit bounds how long one command is typed, so that a long heredoc does not bore.
	typingLimit = 600 * time.Millisecond
	bold        = "\x1b[1m"
	normal      = "\x1b[0m"
)

// screen shows a chapter being played.
type screen struct {
	out     io.Writer
	quiet   bool          // only results
	typing  bool          // as on a terminal: typed commands, output as it comes, colours kept
	bold    bool          // headings
	delay   time.Duration // for each character typed
	partial []byte        // output of which the end of the line is still to come, when not typing
	midLine bool          // the last byte shown was not the end of a line, when typing
}

func (s *screen) heading(step *Step) {
	if s.quiet || step.Title == "" {
		return
	}
	title := step.Title
	if s.bold {
		title = bold + title + normal
	}
	fmt.Fprintf(s.out, "\n%s\n", title)
}

// result shows how a step went; headings and commands have shown it already when not quiet.
func (s *screen) result(word string, step *Step, note string) {
	if !s.quiet {
		return
	}
	title := step.Title
	if title == "" {
		title = "(before the first heading)"
	}
	fmt.Fprintf(s.out, "%-4s  %s (%s)\n", word, title, note)
}

// say shows a line about the playing itself.
func (s *screen) say(line string) {
	if s.quiet {
		return
	}
	fmt.Fprintln(s.out, line)
}

// command shows a command, typed character by character on a terminal, without the end of its last line.
func (s *screen) command(ctx context.Context, text string) {
	if s.quiet {
		return
	}
	fmt.Fprint(s.out, "$ ")
	if !s.typing {
		fmt.Fprint(s.out, text)
		return
	}
	delay := min(s.delay, typingLimit/time.Duration(len(text)+1))
	ticker := time.NewTicker(max(delay, 1))
	defer ticker.Stop()
	for _, char := range text {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			fmt.Fprint(s.out, string(char))
		}
	}
}

func (s *screen) endCommand() {
	if s.quiet {
		return
	}
	fmt.Fprintln(s.out)
}

// live is where the output of a command goes as it comes; nil when it is not shown.
func (s *screen) live() io.Writer {
	if s.quiet {
		return nil
	}
	return s
}

// Write shows output of a command: at once on a terminal; elsewhere line by line, without escape codes.
func (s *screen) Write(chunk []byte) (int, error) {
	if s.typing {
		s.midLine = !bytes.HasSuffix(chunk, []byte("\n"))
		return s.out.Write(chunk)
	}
	s.partial = append(s.partial, chunk...)
	end := bytes.LastIndexByte(s.partial, '\n') + 1
	_, err := io.WriteString(s.out, stripANSI(string(s.partial[:end])))
	s.partial = s.partial[end:]
	return len(chunk), err
}

// endOutput completes the last line of a command's output.
func (s *screen) endOutput() {
	if s.midLine || len(s.partial) > 0 {
		fmt.Fprintln(s.out, stripANSI(string(s.partial)))
	}
	s.midLine, s.partial = false, nil
}

// plural writes a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// seconds writes a duration as people read it.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// String is the summary line of a chapter that was played to its end.
func (r Result) String() string {
	parts := []string{plural(r.Steps, "step"), plural(r.Commands, "command")}
	if r.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("%s skipped (need %s)", plural(r.Skipped, "block"), strings.Join(r.Needs, ", ")))
	}
	parts = append(parts, seconds(r.Elapsed))
	return fmt.Sprintf("played %s: %s", r.Path, strings.Join(parts, ", "))
}

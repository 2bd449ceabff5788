package play

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"example.com/operator-workshop/internal/chapter"
)

const (
	// typingLimit limits how long typing one command takes, so that a long heredoc does not delay the reader.
	typingLimit = 600 * time.Millisecond
	bold        = "\x1b[1m"
	normal      = "\x1b[0m"
)

// screen shows a chapter being played.
type screen struct {
	out     io.Writer
	quiet   bool          // show only results
	typing  bool          // type commands, show output as it comes, keep colours
	bold    bool          // headings
	delay   time.Duration // for each character typed
	partial []byte        // output so far without its newline; only if not typing
	midLine bool          // the last byte shown was not a newline; only if typing
}

// print shows text, unless the screen is quiet.
func (s *screen) print(text string) {
	if !s.quiet {
		// A failed write to the screen must not stop the play.
		_, _ = io.WriteString(s.out, text)
	}
}

func (s *screen) heading(step *chapter.Step) {
	switch {
	case step.Title == "":
	case s.bold:
		s.print("\n" + bold + step.Title + normal + "\n")
	default:
		s.print("\n" + step.Title + "\n")
	}
}

// result shows the result of a step on a quiet screen. Other screens have already shown the heading and commands.
func (s *screen) result(word string, step *chapter.Step, note string) {
	if !s.quiet {
		return
	}
	title := step.Title
	if title == "" {
		title = "(before the first heading)"
	}
	fmt.Fprintf(s.out, "%-4s  %s (%s)\n", word, title, note)
}

// say prints line, followed by a newline.
func (s *screen) say(line string) { s.print(line + "\n") }

// command shows a command without its final newline. On a terminal, it types the command character by character.
func (s *screen) command(ctx context.Context, text string) {
	s.print("$ ")
	if !s.typing || s.quiet {
		s.print(text)
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
			s.print(string(char))
		}
	}
}

func (s *screen) endCommand() { s.print("\n") }

// Write shows a command's output. On a terminal, it shows the output as it comes, and elsewhere line by line, without
// escape codes.
func (s *screen) Write(chunk []byte) (int, error) {
	if s.typing {
		s.midLine = !bytes.HasSuffix(chunk, []byte("\n"))
		s.print(string(chunk))
		return len(chunk), nil
	}
	s.partial = append(s.partial, chunk...)
	end := bytes.LastIndexByte(s.partial, '\n') + 1
	s.print(stripANSI(string(s.partial[:end])))
	s.partial = s.partial[end:]
	return len(chunk), nil
}

// endOutput completes the last line of a command's output.
func (s *screen) endOutput() {
	if s.midLine || len(s.partial) > 0 {
		s.say(stripANSI(string(s.partial)))
	}
	s.midLine, s.partial = false, nil
}

// plural returns a number with its noun, such as "1 step" or "2 steps".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// seconds formats a duration in seconds, such as "1.5 s".
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// Package play runs the console blocks of a chapter in a shell and compares what they print with what is written.
package play

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/internal/chapter"
	"example.com/operator-workshop/internal/providers"
)

// Player plays chapters.
type Player struct {
	Dir     string    // where the commands start; "" is the current directory
	Env     []string  // environment the commands start with
	Out     io.Writer // what is shown
	Cluster string    // one of chapter's; "" means embedded

	Quiet  bool      // show one line per step and the summary only
	From   string    // number of the step to start showing at: those before are played as with Quiet; "" shows all
	Before string    // number of the step to stop before; the cleanup blocks of the rest are still run; "" plays all
	Typing bool      // Out is a terminal: type the commands, show output as it comes, bold headings (unless NO_COLOR)
	In     io.Reader // wait for Enter on it before each command shown, and fail when it ends; nil does not wait
	// Lenient shows output that differs from what is written, and goes on. An exit status that differs still ends the playing.
	Lenient bool

	// Tests set what follows.
	typingDelay    time.Duration // for each character typed; 0 means 8 ms: quick, but possible to follow
	timeout        time.Duration // for a command, and for a background process to be ready; 0 means 2 minutes
	cleanupTimeout time.Duration // for all cleanup blocks together after a failure; 0 means 1 minute
	grace          gracePeriods  // zero means 10 and 5 seconds
	shell          string        // path of a POSIX shell; "" means posixShell
}

// posixShell exists on every system that Kubernetes tools run on.
const posixShell = "/bin/sh"

// Play plays a chapter. At the first thing that is not as the chapter says, it runs the cleanup blocks not reached yet
// and returns an error for a reader to learn from: path:line, the command, what was wanted and what came instead.
// The same when ctx ends; errors.Is then finds ctx's error. Nothing that was started is left running.
func (p *Player) Play(ctx context.Context, c *chapter.Chapter) error {
	playing, err := p.begin(c)
	if err != nil {
		return fmt.Errorf("play %s: %w", c.Path, err)
	}
	start := time.Now()
	err = playing.steps(ctx)
	if err != nil || p.Before != "" {
		err = errors.Join(err, playing.cleanUp(ctx))
	}
	err = errors.Join(err, playing.end())
	if err == nil {
		fmt.Fprintf(p.Out, "played %s: %s, %s\n", c.Path, playing.counts, seconds(time.Since(start)))
	}
	return err
}

// begin prepares the playing of a chapter with the player's settings, or what they are by default.
func (p *Player) begin(c *chapter.Chapter) (*playing, error) {
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return nil, fmt.Errorf("find the directory to start in: %w", err)
	}
	grace := cmp.Or(p.grace, gracePeriods{interrupt: 10 * time.Second, terminate: 5 * time.Second})
	session, err := newSession(cmp.Or(p.shell, posixShell), dir, p.Env, grace)
	if err != nil {
		return nil, err
	}
	playing := &playing{
		player:  p,
		chapter: c,
		session: session,
		screen: &screen{
			out:    p.Out,
			quiet:  p.Quiet || p.From != "",
			typing: p.Typing,
			bold:   p.Typing && !slices.ContainsFunc(p.Env, isNoColor),
			delay:  cmp.Or(p.typingDelay, 8*time.Millisecond),
		},
		reached: p.From == "",
		cluster: cmp.Or(p.Cluster, providers.Embedded),
		done:    map[*chapter.Block]bool{},
	}
	if p.In != nil {
		playing.input = bufio.NewReader(p.In)
	}
	return playing, nil
}

// isNoColor follows no-color.org: the variable counts when it is not empty.
func isNoColor(entry string) bool {
	return strings.HasPrefix(entry, "NO_COLOR=") && entry != "NO_COLOR="
}

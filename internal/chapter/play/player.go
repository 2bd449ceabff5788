// Package play runs the console blocks of a chapter in a shell and compares their output with the chapter's.
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
	Out     io.Writer // receives what the player shows
	Cluster string    // the kind of cluster, as in a chapter's cluster=; "" means embedded

	Quiet  bool      // show only one line per step and the summary
	From   string    // number of the first step to show: the steps before it are played as with Quiet; "" shows all
	Before string    // number of the step to stop before, except that later cleanup blocks still run; "" plays all
	Typing bool      // Out is a terminal: type the commands, show output as it comes, bold headings (unless NO_COLOR)
	In     io.Reader // read Enter from it before running each command shown; fail when it ends; nil does not wait
	// Differs, if not nil, is called for each command whose output differs from the chapter, and the play continues. A
	// different exit status still ends the play.
	Differs func(*Failure)
	// Explain, if not nil, is called before the cleanup if the play has failed without an interruption. Its text about the
	// state of the cluster is added to the error.
	Explain func(ctx context.Context) string

	// Tests set the following fields.

	// typingDelay is the pause before each character typed; long commands are typed faster (see typingLimit). 0 means
	// 8 ms, which is quick, but possible to follow.
	typingDelay time.Duration
	// timeout bounds each command, and the wait for a background process to be ready, in blocks without timeout=. 0 means
	// 2 minutes.
	timeout time.Duration
	// cleanupTimeout bounds all cleanup blocks together if the play ends early. 0 means 1 minute.
	cleanupTimeout time.Duration
	// grace says how long programs may take to end. Zero means 10 seconds after SIGINT and 5 after SIGTERM.
	grace gracePeriods
	// shell is the path of a POSIX shell. "" means posixShell.
	shell string
}

// posixShell is the path of a POSIX shell on Linux and macOS.
const posixShell = "/bin/sh"

// Play plays a chapter. At the first difference from the chapter that it does not pass to Differs, Play runs the
// cleanup blocks that it has not played to their end, and returns an error that wraps a Failure. When ctx ends, it does
// the same, but the error wraps ctx's error. At the end, Play stops all processes that the commands have started,
// except those that have left their process group.
func (p *Player) Play(ctx context.Context, c *chapter.Chapter) error {
	playing, err := p.begin(c)
	if err != nil {
		return fmt.Errorf("play %s: %w", c.Path, err)
	}
	start := time.Now()
	err = playing.steps(ctx)
	if err != nil && ctx.Err() == nil && p.Explain != nil {
		if explanation := p.Explain(ctx); explanation != "" {
			err = fmt.Errorf("%w\n%s", err, explanation)
		}
	}
	if err != nil || p.Before != "" {
		err = errors.Join(err, playing.cleanUp(ctx))
	}
	err = errors.Join(err, playing.end())
	if err == nil {
		fmt.Fprintf(p.Out, "played %s: %s, %s\n", c.Path, playing.counts, seconds(time.Since(start)))
	}
	return err
}

// begin prepares to play a chapter with the player's settings or their defaults.
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

// isNoColor reports whether an entry sets NO_COLOR. As no-color.org says, an empty value does not count.
func isNoColor(entry string) bool {
	return strings.HasPrefix(entry, "NO_COLOR=") && entry != "NO_COLOR="
}

package chapter

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Player plays chapters. Its zero value plays in the current directory, with the environment of this process,
// for the embedded cluster, and shows nothing.
type Player struct {
	Dir string    // where the commands start; "" is the current directory
	Env []string  // environment the commands start with; nil is that of this process
	Out io.Writer // what is shown; nil shows nothing

	Quiet       bool          // show one line per step and the summary only
	Typing      bool          // Out is a terminal: type the commands, show output as it comes, bold headings (unless NO_COLOR)
	TypingDelay time.Duration // for each character typed; 0 means 20 ms
	Step        bool          // wait for Enter on In before each command
	In          io.Reader     // of Enter; without it, Step does nothing

	Cluster string // ClusterEmbedded, ClusterKind or ClusterCurrent; "" means embedded

	Timeout        time.Duration // for a command, and for a background process to be ready; 0 means 2 minutes
	CleanupTimeout time.Duration // for all cleanup blocks together after a failure; 0 means 1 minute
	InterruptGrace time.Duration // between SIGINT and SIGTERM; 0 means 10 seconds
	TerminateGrace time.Duration // between SIGTERM and SIGKILL; 0 means 5 seconds

	shell string // path of a POSIX shell; "" means posixShell
}

// Result counts what was played.
type Result struct {
	Path     string
	Steps    int // with at least one block played
	Commands int
	Skipped  int      // blocks for other clusters
	Needs    []string // what the skipped blocks are for
	Elapsed  time.Duration
}

// posixShell exists on every system that Kubernetes tools run on.
const posixShell = "/bin/sh"

// Play plays a chapter. At the first thing that is not as the chapter says, it runs the cleanup blocks not reached yet
// and returns an error for a reader to learn from: path:line, the command, what was wanted and what came instead.
// The same when ctx ends; errors.Is then finds ctx's error. Nothing that was started is left running.
func (p *Player) Play(ctx context.Context, chapter *Chapter) (Result, error) {
	play, err := p.begin(chapter)
	if err != nil {
		return Result{Path: chapter.Path}, fmt.Errorf("play %s: %w", chapter.Path, err)
	}
	start := time.Now()
	err = play.steps(ctx)
	if err != nil {
		err = errors.Join(err, play.cleanUp(ctx))
	}
	err = errors.Join(err, play.end())
	play.result.Elapsed = time.Since(start)
	if err == nil && play.screen.out != io.Discard {
		fmt.Fprintln(play.screen.out, play.result)
	}
	return play.result, err
}

// begin prepares the playing of a chapter with the player's settings, or what they are by default.
func (p *Player) begin(chapter *Chapter) (*play, error) {
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return nil, fmt.Errorf("find the directory to start in: %w", err)
	}
	env := p.Env
	if env == nil {
		env = os.Environ()
	}
	session, err := newSession(cmp.Or(p.shell, posixShell), dir, env, patience{
		interrupt: cmp.Or(p.InterruptGrace, 10*time.Second),
		terminate: cmp.Or(p.TerminateGrace, 5*time.Second),
	})
	if err != nil {
		return nil, err
	}
	out := p.Out
	if out == nil {
		out = io.Discard
	}
	return &play{
		chapter: chapter,
		session: session,
		screen: &screen{
			out:    out,
			quiet:  p.Quiet,
			typing: p.Typing && !p.Quiet,
			bold:   p.Typing && !noColor(env),
			delay:  cmp.Or(p.TypingDelay, 20*time.Millisecond),
		},
		enter:          p.enter(),
		echo:           p.Typing && p.Step && p.In != nil,
		cluster:        cmp.Or(p.Cluster, ClusterEmbedded),
		timeout:        cmp.Or(p.Timeout, 2*time.Minute),
		cleanupTimeout: cmp.Or(p.CleanupTimeout, time.Minute),
		done:           map[*Block]bool{},
		result:         Result{Path: chapter.Path},
	}, nil
}

// noColor follows no-color.org: the variable counts when it is not empty.
func noColor(env []string) bool {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "NO_COLOR="); ok && value != "" {
			return true
		}
	}
	return false
}

// enter returns what waits for the Enter key before each command. At the end of the input it waits no more.
func (p *Player) enter() func(context.Context) {
	if !p.Step || p.In == nil {
		return func(context.Context) {}
	}
	input := bufio.NewReader(p.In)
	return func(ctx context.Context) {
		pressed := make(chan struct{})
		go func() {
			defer close(pressed)
			_, _ = input.ReadString('\n')
		}()
		select {
		case <-pressed:
		case <-ctx.Done():
		}
	}
}

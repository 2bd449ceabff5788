package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"example.com/operator-workshop/internal/exercise"
)

// watcher implements `make stage-N watch`: it checks a step after each save that changes the learner's code.
type watcher struct {
	app  *app
	cmd  *cobra.Command
	own  *exercise.Copy
	out  io.Writer
	step string
	// clears makes watch clear the screen before each check.
	clears bool
}

// watch checks the given step, or the first that is not done, or all if none is left. It checks now, and after each
// save that changes the learner's code.
func (a *app) watch(cmd *cobra.Command, own *exercise.Copy, step string) (err error) {
	unlock, err := own.Lock("watch")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if step != "" {
		if _, err := own.Step(step); err != nil {
			return err // saving a file would not change that
		}
	}
	end, err := own.ShareControlPlane(cmd.Context())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	changes, err := own.Changes(ctx)
	if err != nil {
		return err
	}
	w := &watcher{app: a, cmd: cmd, own: own, out: cmd.OutOrStdout(), step: step}
	var keys <-chan byte
	if terminal := int(os.Stdin.Fd()); term.IsTerminal(terminal) {
		// In raw mode, keys arrive without Enter. But a line feed then no longer returns to the beginning of the line.
		before, failed := term.MakeRaw(terminal)
		if failed != nil {
			return fmt.Errorf("read keys from the terminal: %w", failed)
		}
		defer func() { err = errors.Join(err, term.Restore(terminal, before)) }()
		w.out, w.clears = carriageReturns{w.out}, true
		cmd.SetOut(w.out)
		keys = readKeys(os.Stdin)
	}
	return w.run(ctx, changes, keys)
}

// run repeats the check until ctx ends or the user presses a key to quit.
func (w *watcher) run(ctx context.Context, changes <-chan struct{}, keys <-chan byte) error {
	for {
		if w.clears {
			fmt.Fprint(w.out, "\033[2J\033[H")
		}
		again, err := w.checkUntil(ctx, changes, keys)
		if !again || err != nil {
			return err
		}
	}
}

// checkUntil checks once, and reacts to key presses. It returns true when it is time for the next check, and false when
// watch must end.
func (w *watcher) checkUntil(ctx context.Context, changes <-chan struct{}, keys <-chan byte) (again bool, err error) {
	if w.step == "" {
		next, err := w.own.Next()
		if err != nil {
			return false, err
		}
		if next < len(w.own.Steps) {
			w.step = w.own.Steps[next].ID
		}
	}
	checking, cancel := context.WithCancel(ctx)
	defer cancel()
	var result error
	done := make(chan struct{})
	go func() {
		defer close(done)
		result = w.check(checking)
	}()
	stop := func() {
		cancel()
		<-done
	}
	checked := done
	for {
		select {
		case <-ctx.Done():
			stop()
			return false, nil
		case <-changes:
			stop()
			return true, nil
		case <-checked:
			checked = nil
			if result != nil && !errors.Is(result, errNotDone) {
				fmt.Fprintln(w.out, "workshop:", result)
			}
			fmt.Fprintln(w.out, "\nChecked. Save a file to check again; keys: h hint, d diff, s solution, n next step, q quit")
		case key := <-keys:
			if key == 'q' || key == ctrlC {
				stop()
				return false, nil
			}
			if key == 'n' {
				stop()
				w.step = ""
				return true, nil
			}
			if err := w.press(ctx, key); err != nil {
				fmt.Fprintln(w.out, "workshop:", err)
			}
		}
	}
}

// retryPeriod is how often watch tries to check while another process is checking.
const retryPeriod = 500 * time.Millisecond

// check waits until no other process is checking the copy, and then checks it.
func (w *watcher) check(ctx context.Context) error {
	waits := false
	for {
		err := w.checkNow(ctx)
		if !errors.Is(err, exercise.ErrRunning) {
			return err
		}
		if !waits {
			waits = true
			fmt.Fprintf(w.out, "Waiting for the `make stage-%d check` that is running elsewhere.\n", w.own.Number)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryPeriod):
		}
	}
}

// checkNow checks the step or, if all are done, all steps. If the copy has a break in it, checkNow checks the break.
func (w *watcher) checkNow(ctx context.Context) error {
	w.cmd.SetContext(ctx)
	broken, kept, err := w.own.Broken()
	if err != nil {
		return err
	}
	if broken != nil {
		return w.app.whileBroken(w.cmd, w.own, "check", *broken, kept)
	}
	return w.app.check(ctx, w.out, w.own, w.step)
}

// press performs the key's action.
func (w *watcher) press(ctx context.Context, key byte) error {
	verb, found := map[byte]string{'h': "hint", 'd': "diff", 's': "solve"}[key]
	if !found {
		return nil
	}
	broken, kept, err := w.own.Broken()
	if err != nil {
		return err
	}
	if broken != nil {
		w.cmd.SetContext(ctx)
		return w.app.whileBroken(w.cmd, w.own, verb, *broken, kept)
	}
	if w.step == "" {
		return fmt.Errorf("all steps of stage %d are done", w.own.Number)
	}
	switch verb {
	case "hint":
		return printHints(w.out, w.own, w.step)
	case "diff":
		return w.app.diff(ctx, w.out, w.own, w.step)
	default:
		return replace(w.out, w.own.Solve, w.step, "solved")
	}
}

// ctrlC is the byte that a terminal in raw mode sends for Ctrl-C.
const ctrlC = 3

// readKeys returns a channel that receives each key typed.
func readKeys(terminal io.Reader) <-chan byte {
	keys := make(chan byte)
	go func() {
		key := make([]byte, 1)
		for {
			if _, err := terminal.Read(key); err != nil {
				return
			}
			keys <- key[0]
		}
	}()
	return keys
}

// carriageReturns writes to a terminal in raw mode, which needs a carriage return at the end of each line.
type carriageReturns struct{ io.Writer }

func (w carriageReturns) Write(text []byte) (int, error) {
	if _, err := w.Writer.Write(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Package leftover keeps two plays off one cluster, and ends what a killed play has left running.
//
// Everything that a play starts inherits an environment variable with a value that only this play has. So it can be
// found even when it has left its process group, as chapter 6's control planes do. When the player is killed, a
// watchdog ends all of this. If the watchdog is killed as well, the next command of the workshop does.
package leftover

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// Variable is in the environment of all that a play has started.
const Variable = "WORKSHOP_PLAY"

const (
	// grace is how long programs may take to end when they are asked to.
	grace = 2 * time.Second
	// killLimit bounds how long killed programs may take to vanish.
	killLimit = 10 * time.Second
	// ending is the ending of a lock's name. The file holds the mark of the last play on a cluster.
	ending = ".play.lock"
)

// Play is a play that has a cluster for itself.
type Play struct {
	lock  *flock.Flock
	mark  string
	leash io.Closer
}

// Begin takes the cluster with this key for a play, and ends what an earlier one has left running there. It fails when
// another play is under way. Watchdog is the command that calls Watch with the argument that is added to it.
func Begin(ctx context.Context, state, key string, watchdog ...string) (*Play, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("take the cluster for a play: %w", err)
	}
	lock := flock.New(filepath.Join(state, key+ending))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("take the cluster for a play: %w", err)
	}
	if !locked {
		return nil, errors.New("a chapter is being played on this cluster already: wait for its end, or choose another cluster with NAME=")
	}
	p := &Play{lock: lock, mark: rand.Text()}
	if err := p.begin(ctx, watchdog); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return p, nil
}

func (p *Play) begin(ctx context.Context, watchdog []string) error {
	if err := endRecorded(ctx, p.lock.Path()); err != nil {
		return err
	}
	if err := os.WriteFile(p.lock.Path(), []byte(p.mark), 0o600); err != nil {
		return fmt.Errorf("record the play: %w", err)
	}
	command := exec.Command(watchdog[0], append(slices.Clone(watchdog[1:]), p.mark)...)
	// A session of its own, so that closing the player's terminal does not end the watchdog.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	leash, err := command.StdinPipe()
	if err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	go func() { _ = command.Wait() }() // it has nothing to tell
	p.leash = leash
	return nil
}

// Environment is what every program of the play gets.
func (p *Play) Environment() string { return Variable + "=" + p.mark }

// End ends what still runs and releases the cluster.
func (p *Play) End(ctx context.Context) error {
	err := end(context.WithoutCancel(ctx), p.mark)
	if err == nil {
		err = os.Truncate(p.lock.Path(), 0)
	}
	_ = p.leash.Close() // an error means that the watchdog is gone
	return errors.Join(err, p.lock.Close())
}

// Watch waits for the end of the player, which closes the leash, and then ends what still runs.
func Watch(ctx context.Context, leash io.Reader, mark string) error {
	_, _ = io.Copy(io.Discard, leash)
	return end(ctx, mark)
}

// Sweep ends what the killed plays of this checkout have left running. It leaves plays alone that are under way.
func Sweep(ctx context.Context, state string) error {
	locks, err := fs.Glob(os.DirFS(state), "*"+ending)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range locks {
		errs = append(errs, sweep(ctx, filepath.Join(state, name)))
	}
	return errors.Join(errs...)
}

func sweep(ctx context.Context, path string) error {
	// Most plays ended well: then there is nothing to lock.
	if content, err := os.ReadFile(path); err != nil || len(content) == 0 {
		return nil
	}
	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err != nil || !locked {
		return err
	}
	return errors.Join(endRecorded(ctx, path), lock.Close())
}

// endRecorded ends what the play recorded in a locked file has left, and forgets that play.
func endRecorded(ctx context.Context, path string) error {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read which play was here: %w", err)
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return nil
	}
	if err := end(ctx, string(content)); err != nil {
		return err
	}
	return os.Truncate(path, 0)
}

// end asks every program with the mark to end, and kills those that don't.
func end(ctx context.Context, mark string) error {
	asked := map[int]bool{}
	for _, try := range []struct {
		signal syscall.Signal
		limit  time.Duration
	}{{syscall.SIGTERM, grace}, {syscall.SIGKILL, killLimit}} {
		limited, cancel := context.WithTimeout(ctx, try.limit)
		gone, err := endWith(limited, mark, try.signal, asked)
		cancel()
		if gone || err != nil {
			return err
		}
		clear(asked)
	}
	return errors.New("programs that a play has started can't be ended: look for them with `ps`")
}

// endWith sends a signal to every program with the mark, once to each, until none is left or ctx is over.
func endWith(ctx context.Context, mark string, signal syscall.Signal, asked map[int]bool) (bool, error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		found, err := marked(Variable + "=" + mark)
		if err != nil {
			return false, fmt.Errorf("look for programs that a play has left: %w", err)
		}
		if len(found) == 0 {
			return true, nil
		}
		for _, pid := range found {
			if !asked[pid] {
				asked[pid] = true
				_ = syscall.Kill(pid, signal) // an error means that it is gone
			}
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-ticker.C:
		}
	}
}

// Package leftover makes sure that only one play (a run of a chapter or of a stage's end-to-end test) uses a cluster at
// a time, and stops the programs that a killed play left running.
//
// The programs that a play starts, except those of clusters, inherit an environment variable whose value is unique to
// the play. The value identifies even a program that leaves its process group, such as a daemon. If the player (the
// process of the play) is killed, a watchdog stops the programs with that value. If the watchdog is killed, too, the
// next command of the workshop stops them.
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

	"example.com/operator-workshop/internal/procgroup"
)

// Variable is set in the environment of the programs that a play starts, except those of clusters.
const Variable = "WORKSHOP_PLAY"

const (
	// grace is how long programs may take to exit after SIGTERM.
	grace = 2 * time.Second
	// killLimit bounds the wait for killed programs to disappear.
	killLimit = 10 * time.Second
	// ending is the suffix of a lock file's name. The file contains the mark of the last play on a cluster until that
	// play's programs have been stopped. Then the file is empty.
	ending = ".play.lock"
)

// Play is a run of a chapter, or of a stage's end-to-end test, that has exclusive use of a cluster.
type Play struct {
	lock  *flock.Flock
	mark  string
	leash io.Closer
}

// Begin locks the cluster that key identifies, and stops the programs that an earlier play left running there. It fails
// if another play is in progress there. Begin starts watchdog, a command that must call Watch, with the play's mark as
// an additional argument.
func Begin(ctx context.Context, state, key string, watchdog ...string) (*Play, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("lock the cluster for a play: %w", err)
	}
	lock := flock.New(filepath.Join(state, key+ending))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the cluster for a play: %w", err)
	}
	if !locked {
		return nil, errors.New("a chapter is already being played on this cluster: wait until it ends, or choose another cluster, for example with NAME=")
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
	leash, err := procgroup.Watchdog(command)
	if err != nil {
		return err
	}
	go func() { _ = command.Wait() }() // reaps the watchdog, whose exit status doesn't matter
	p.leash = leash
	return nil
}

// Environment returns the variable, as NAME=value, to set for every program of the play.
func (p *Play) Environment() string { return Variable + "=" + p.mark }

// End stops the programs that are still running and releases the cluster.
func (p *Play) End(ctx context.Context) error {
	err := end(context.WithoutCancel(ctx), p.mark)
	if err == nil {
		err = os.Truncate(p.lock.Path(), 0)
	}
	_ = p.leash.Close() // an error means that the watchdog has already exited
	return errors.Join(err, p.lock.Close())
}

// Watch waits until the player ends, which closes leash, and then stops the programs that are still running.
func Watch(ctx context.Context, leash io.Reader, mark string) error {
	_, _ = io.Copy(io.Discard, leash)
	return end(ctx, mark)
}

// Sweep stops the programs that killed plays of this checkout left running. It doesn't touch plays in progress.
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
	// If the last play's programs have been stopped, the file is empty, and there is no need to lock it.
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

// endRecorded reads the mark of a play from a locked file, stops the programs that the play left running, and erases
// the mark.
func endRecorded(ctx context.Context, path string) error {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the mark of the last play: %w", err)
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return nil
	}
	if err := end(ctx, string(content)); err != nil {
		return err
	}
	return os.Truncate(path, 0)
}

// end sends SIGTERM to every program with the mark, and SIGKILL to those that don't exit in time.
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
	return errors.New("programs that a play started are still running: look for them with `ps`")
}

// endWith sends a signal to every program with the mark, once to each, until none is left or ctx ends. It reports
// whether none is left.
func endWith(ctx context.Context, mark string, signal syscall.Signal, asked map[int]bool) (bool, error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		found, err := marked(Variable + "=" + mark)
		if err != nil {
			return false, fmt.Errorf("look for programs that a play left running: %w", err)
		}
		if len(found) == 0 {
			return true, nil
		}
		for _, pid := range found {
			if !asked[pid] {
				asked[pid] = true
				_ = syscall.Kill(pid, signal) // an error means that the program has already exited
			}
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-ticker.C:
		}
	}
}

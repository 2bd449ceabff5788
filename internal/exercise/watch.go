package exercise

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/gofrs/flock"
)

// settle is how long to wait for further changes after a change, because editors save a file in several steps.
const settle = 100 * time.Millisecond

// ErrRunning means that a command can't run, because another process is running it in the same copy.
var ErrRunning = errors.New("use that one, or stop it first")

// Lock keeps two processes from running the same command, such as check, in the copy at the same time. It fails with
// ErrRunning if another process is already running the command.
func (c *Copy) Lock(what string) (unlock func() error, err error) {
	if err := c.Exists(); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(c.work(), "."+filepath.Base(c.Path)+"-"+what+".lock"))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", c.name(), err)
	}
	if !locked {
		return nil, fmt.Errorf("another `make stage-%d %s` is running in %s: %w", c.Number, what, c.name(), ErrRunning)
	}
	return lock.Close, nil
}

// Changes sends a signal whenever files that a learner writes have changed, until ctx is done. It ignores tests,
// generated files, and saves that change nothing.
func (c *Copy) Changes(ctx context.Context) (<-chan struct{}, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", c.name(), err)
	}
	last, err := c.hashWatched(watcher)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch %s: %w", c.name(), err), watcher.Close())
	}
	changed := make(chan struct{}, 1)
	go func() {
		defer func() { _ = watcher.Close() }()
		quiet := time.NewTimer(0)
		<-quiet.C
		for {
			select {
			case <-ctx.Done():
				return
			case lost := <-watcher.Errors:
				if lost != nil { // events were lost: find out what has changed
					quiet.Reset(settle)
				}
			case <-watcher.Events:
				quiet.Reset(settle)
			case <-quiet.C:
				now, err := c.hashWatched(watcher)
				if err != nil || now == last {
					continue // nothing has changed, or a file is being replaced and another event will follow
				}
				last = now
				select {
				case changed <- struct{}{}:
				default: // a signal is already waiting
				}
			}
		}
	}()
	return changed, nil
}

// hashWatched returns a hash of the files that a learner writes, and adds all their folders to the watcher.
func (c *Copy) hashWatched(watcher *fsnotify.Watcher) (string, error) {
	sum := sha256.New()
	err := c.written(watcher.Add, func(path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %x\n", path, sha256.Sum256(content))
		return nil
	})
	return string(sum.Sum(nil)), err
}

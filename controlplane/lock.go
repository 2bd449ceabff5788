package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"example.com/operator-workshop/internal/private"
)

const (
	lockFile = "lock"
	// lockTimeout bounds the wait for another process that is changing the control plane.
	lockTimeout = 10 * time.Minute
	// lockPoll is the interval at which a lock or a port is checked again.
	lockPoll = 20 * time.Millisecond
)

// lock makes the folder if needed, waits until no other process is changing the control plane, and then keeps other
// processes from changing it until unlock is called.
func (c *ControlPlane) lock(ctx context.Context) (unlock func(), err error) {
	var file *os.File
	waiting := false
	waitErr := poll(ctx, lockTimeout, lockPoll, func(context.Context) bool {
		file, err = c.tryLock()
		if errors.Is(err, syscall.EWOULDBLOCK) && !waiting {
			waiting = true
			c.say("Waiting for another command to finish with %s.", c.name())
		}
		return !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, os.ErrNotExist)
	})
	if errors.Is(waitErr, errTimeLimit) {
		waitErr = fmt.Errorf("other commands have kept it locked for %s: stop them, and try again", lockTimeout)
	}
	if err := errors.Join(waitErr, err); waitErr != nil || err != nil {
		return nil, fmt.Errorf("lock the control plane in %s: %w", c.dir, err)
	}
	return func() { _ = file.Close() }, nil
}

func (c *ControlPlane) tryLock() (*os.File, error) {
	if err := private.MakeDir(c.dir); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(c.path(lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, private.Explain(err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = sameFile(file, c.path(lockFile))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// sameFile makes sure that no other process removed the file before it was locked: a lock on a removed file has no
// effect.
func sameFile(file *os.File, path string) error {
	mine, err := file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(path)
	if err == nil && !os.SameFile(mine, there) {
		err = os.ErrNotExist
	}
	return err
}

// lockExisting is like lock, but doesn't make the folder: if there is none, both results are nil.
func (c *ControlPlane) lockExisting(ctx context.Context) (unlock func(), err error) {
	if _, err := os.Lstat(c.dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return c.lock(ctx)
}

// lockFound is like lock, but doesn't make the folder: if there is none, it returns ErrNotFound.
func (c *ControlPlane) lockFound(ctx context.Context) (unlock func(), err error) {
	unlock, err = c.lockExisting(ctx)
	if unlock == nil && err == nil {
		err = fmt.Errorf("%w in %s", ErrNotFound, c.dir)
	}
	return unlock, err
}

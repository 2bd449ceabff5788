// Package keeper keeps the control plane of the exercises' checks running from one check to the next.
//
// A check that needs a control plane spends several seconds starting it. So a background process, the keeper,
// outlives the check, and owns the folder in which the check left its control plane. It removes both when no check has
// used them for a while. If the keeper is killed, the folder's watchdog does that; see [controlplane.Scratch].
package keeper

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"example.com/operator-workshop/controlplane"
)

const (
	// Idle is how long a control plane is kept after its last check. Learners need about 15 minutes for the longest step.
	Idle = 15 * time.Minute
	// usedFile is locked by the check that is using the control plane. Its modification time says when a check last
	// used the control plane.
	usedFile = "checks.lock"
	// keeperFile is locked by the keeper. It contains the keeper's process ID and the path of its folder.
	keeperFile = "checks.keeper"
	// interval is the longest time between two of the keeper's checks of usedFile.
	interval = time.Second
	// poll is the interval between two attempts to get a lock. limit bounds the wait until a keeper has ended.
	poll, limit = 20 * time.Millisecond, 10 * time.Second
	// lookTime is how long to try to lock usedFile. A keeper that only checks the file locks it much more briefly.
	lookTime = time.Second
)

// Borrow returns a value for [testcluster.ScratchVariable]: the folder whose control plane the checks of this checkout
// share. If no keeper is running, Borrow starts the given command, which must call [Run]. If another check is using the
// folder, Borrow returns one that is only for this process. Call giveBack after the check.
func Borrow(ctx context.Context, state string, command ...string) (folder string, giveBack func() error, err error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return "", nil, fmt.Errorf("share a control plane: %w", err)
	}
	used := flock.New(filepath.Join(state, usedFile))
	free, err := tryFor(ctx, lookTime, used)
	if err != nil {
		return "", nil, fmt.Errorf("share a control plane: %w", err)
	}
	if !free {
		return controlplane.Scratch()
	}
	_, folder, err = running(state)
	if err == nil && folder == "" {
		folder, err = start(command)
	}
	if err == nil {
		err = touch(used)
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("share a control plane: %w", err), used.Close())
	}
	return folder, func() error { return errors.Join(touch(used), used.Close()) }, nil
}

// Run makes a folder for control planes, and writes its path to ready. When no check has used them for the given time,
// when ctx is done, or when the checkout has been deleted, Run removes the folder with its control planes, and returns.
// It fails if another keeper of the checkout is running.
func Run(ctx context.Context, state string, idle time.Duration, ready io.Writer) error {
	kept := flock.New(filepath.Join(state, keeperFile))
	first, err := kept.TryLock()
	if err != nil {
		return fmt.Errorf("lock %s: %w", kept.Path(), err)
	}
	if !first {
		return errors.New("another keeper is running")
	}
	folder, end, err := controlplane.Scratch()
	if err != nil {
		return errors.Join(err, kept.Close())
	}
	used := flock.New(filepath.Join(state, usedFile))
	err = os.WriteFile(kept.Path(), fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), folder), 0o600)
	if err == nil {
		_, err = fmt.Fprintln(ready, folder)
	}
	if err == nil {
		err = wait(ctx, used, idle)
	}
	// Until the folder is gone, no check may borrow it, so unlock usedFile last.
	return errors.Join(err, end(), kept.Close(), used.Close())
}

// wait waits until no check has used the control plane for the given time, and then returns with used locked. It also
// returns, without the lock, when ctx is done or when the locked file is gone.
func wait(ctx context.Context, used *flock.Flock, idle time.Duration) error {
	ticker := time.NewTicker(min(interval, idle))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		info, err := os.Stat(used.Path()) // before TryLock, which would create the file
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		free, err := used.TryLock()
		if err != nil || free && time.Since(info.ModTime()) >= idle {
			return err
		}
		if err := used.Unlock(); err != nil {
			return err
		}
	}
}

// End ends the keeper and its control plane, unless a check is using the control plane. It reports whether it ended a
// keeper.
func End(ctx context.Context, state string) (ended bool, err error) {
	used := flock.New(filepath.Join(state, usedFile))
	if _, err := os.Stat(used.Path()); err != nil {
		return false, nil
	}
	free, err := tryFor(ctx, lookTime, used)
	if !free || err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, used.Close()) }()
	id, folder, err := running(state)
	if folder == "" || err != nil {
		return false, err
	}
	if err := syscall.Kill(id, syscall.SIGTERM); err != nil {
		return false, fmt.Errorf("end the keeper of the checks' control plane: %w", err)
	}
	kept := flock.New(filepath.Join(state, keeperFile))
	gone, err := tryFor(ctx, limit, kept)
	if err == nil && !gone {
		err = fmt.Errorf("end the keeper of the checks' control plane: process %d is still running", id)
	}
	return gone, errors.Join(err, kept.Close())
}

// running returns the process ID and the folder of the keeper, or 0 and "" if none is running.
func running(state string) (id int, folder string, err error) {
	kept := flock.New(filepath.Join(state, keeperFile))
	dead, err := kept.TryLock()
	if err := errors.Join(err, kept.Close()); err != nil || dead {
		return 0, "", err
	}
	content, err := os.ReadFile(kept.Path())
	if err != nil {
		return 0, "", err
	}
	number, rest, _ := strings.Cut(string(content), "\n")
	if id, err = strconv.Atoi(number); err != nil {
		return 0, "", fmt.Errorf("%s does not begin with a process ID: %w", kept.Path(), err)
	}
	return id, strings.TrimSuffix(rest, "\n"), nil
}

func start(command []string) (folder string, err error) {
	keeper := exec.Command(command[0], command[1:]...)
	// The keeper gets a session of its own, so that neither Ctrl-C nor closing the terminal ends it.
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := keeper.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("start the keeper: %w", err)
	}
	keeper.Stderr = keeper.Stdout
	if err := keeper.Start(); err != nil {
		return "", fmt.Errorf("start the keeper: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	line = strings.TrimSuffix(line, "\n")
	if info, statErr := os.Stat(line); err != nil || statErr != nil || !info.IsDir() {
		return "", errors.Join(fmt.Errorf("start the keeper: it printed %q", line), err, keeper.Wait())
	}
	return line, errors.Join(out.Close(), keeper.Process.Release())
}

// tryFor waits for the lock until limit has passed, and reports whether it got the lock.
func tryFor(ctx context.Context, limit time.Duration, lock *flock.Flock) (bool, error) {
	trying, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	locked, err := lock.TryLockContext(trying, poll)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, nil
	}
	return locked, err
}

func touch(lock *flock.Flock) error {
	now := time.Now()
	return os.Chtimes(lock.Path(), now, now)
}

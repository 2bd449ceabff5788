package classroom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gofrs/flock"

	"example.com/operator-workshop/internal/private"
)

// lockLimit bounds the wait for another command. Even on a slow machine, commands rarely take this long.
const lockLimit = 10 * time.Minute

// lock keeps other commands from changing what the file protects, such as a cluster, until unlock is called. It waits
// for at most limit. Before it waits, it prints which command it is waiting for.
func lock(ctx context.Context, path string, out io.Writer, limit time.Duration) (unlock func(), err error) {
	if err := private.MakeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	file := flock.New(path)
	locked, err := file.TryLock()
	if err == nil && !locked {
		fmt.Fprintf(out, "Waiting for %s to finish.\n", holder(path))
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_, err = file.TryLockContext(limited, 50*time.Millisecond)
	}
	switch {
	case ctx.Err() != nil:
		err = contextError(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%s is still running after %s: end it, then run the same command again", holder(path), limit)
	case err != nil:
		err = fmt.Errorf("lock %s: %w", path, private.Explain(err))
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	// The process ID is used only in the messages above, so ignore an error: a full disk must not keep `make down` from
	// freeing space.
	_ = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o600)
	return func() { _ = file.Close() }, nil
}

// holder describes the command that holds the lock. It reads the command's process ID from the file.
func holder(path string) string {
	content, _ := os.ReadFile(path)
	if pid, err := strconv.Atoi(string(content)); err == nil {
		return fmt.Sprintf("another command (process %d)", pid)
	}
	return "another command"
}

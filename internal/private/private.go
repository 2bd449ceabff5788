// Package private creates files and folders that only their owner can access.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// WriteFile creates or replaces a file atomically: a reader never sees an incomplete file.
func WriteFile(path string, content []byte) error {
	partial := path + ".partial"
	if err := os.WriteFile(partial, content, 0o600); err != nil {
		return Explain(err)
	}
	return os.Rename(partial, path)
}

// MakeDir makes a folder and its missing parents, which only their owner can enter. If the folder exists, MakeDir
// removes other users' permissions.
func MakeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Explain(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	return Explain(os.Chmod(dir, 0o700))
}

// Explain adds advice to the error from a write if the disk is full, a quota is used up, or the folder isn't writable.
func Explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the disk is full: free some space and run the same command again (%w)", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the folder is not writable: use one of your own (%w)", err)
	}
	return err
}

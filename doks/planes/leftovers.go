package planes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"example.com/operator-workshop/internal/repo"
)

// home makes the folder for the control planes of emulators without a state file, unless it exists, and returns it. The
// folder is in the workshop's cache, which by default is in a directory where no other user can create anything.
func home() (string, error) {
	cache, err := repo.CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "do-emulator")
	return dir, makePrivate(dir)
}

// makePrivate makes a folder that only its owner can enter. It rejects a folder that another user may have prepared,
// because the emulator would trust the files in it, and later delete them.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder for the control planes: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check the folder of the control planes: %w", err)
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !known || int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s must be a folder that belongs to you and that no other user can enter (mode 0700): remove it, or change its owner and mode", dir)
	}
	return nil
}

// OpenTemporary is like Open, with a new folder.
func OpenTemporary(assets string, out io.Writer) (*Kwok, error) {
	home, err := home()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(home, "planes-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the control planes: %w", err)
	}
	kwok, err := Open(dir, assets, out)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return kwok, nil
}

// DeleteLeftovers removes the control planes that emulators without a state file left behind, normally because they
// were killed.
func DeleteLeftovers(ctx context.Context, assets string, out io.Writer) error {
	home, err := home()
	if err != nil {
		return err
	}
	folders, err := fs.Glob(os.DirFS(home), "planes-*")
	if err != nil {
		return fmt.Errorf("list control planes that were left behind: %w", err)
	}
	for _, folder := range folders {
		kwok, err := Open(filepath.Join(home, folder), assets, out)
		if err != nil {
			continue // normally because its emulator is running
		}
		if err := kwok.DeleteAll(ctx); err != nil {
			return errors.Join(fmt.Errorf("remove control planes that were left behind: %w", err), kwok.Close())
		}
	}
	return nil
}

package planes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// home is where the folders of emulators without a state file lie.
func home() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("do-emulator-%d", os.Getuid()))
}

// OpenTemporary is Open with a folder that is new.
func OpenTemporary(bin string, out io.Writer) (*Kwok, error) {
	if err := os.MkdirAll(home(), 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for the control planes: %w", err)
	}
	dir, err := os.MkdirTemp(home(), "planes-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the control planes: %w", err)
	}
	kwok, err := Open(dir, bin, out)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return kwok, nil
}

// DeleteLeftovers removes the control planes of emulators without a state file
// that were killed: they could not do it themselves, and nobody would find them again.
func DeleteLeftovers(ctx context.Context, bin string, out io.Writer) error {
	folders, err := filepath.Glob(filepath.Join(home(), "planes-*"))
	if err != nil {
		return fmt.Errorf("list control planes that were left behind: %w", err)
	}
	for _, folder := range folders {
		kwok, err := Open(folder, bin, out)
		if err != nil {
			continue // its emulator runs
		}
		if err := kwok.DeleteAll(ctx); err != nil {
			return fmt.Errorf("remove control planes that were left behind: %w", err)
		}
	}
	return nil
}

package doks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
)

const fileFormat = 1

// readAccount reads the state file, or returns an empty account if there is none.
func readAccount(path string) (account, error) {
	fresh := account{Format: fileFormat}
	if path == "" {
		return fresh, nil
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, checkWritable(path, fresh)
	}
	if err != nil {
		return fresh, fmt.Errorf("read the state file: %w", err)
	}
	var found account
	if err := json.Unmarshal(content, &found); err != nil {
		return fresh, fmt.Errorf("the state file %s is broken (%w): remove it to start over", path, err)
	}
	if found.Format != fileFormat {
		return fresh, fmt.Errorf("the state file %s has the format %d, not %d: remove it to start over", path, found.Format, fileFormat)
	}
	if err := found.check(); err != nil {
		return fresh, fmt.Errorf("the state file %s is broken (%w): remove it to start over", path, err)
	}
	return found, nil
}

// checkWritable writes an empty account, so that a file that can't be written is reported at startup, not on the first
// create.
func checkWritable(path string, fresh account) error { return fresh.write(path) }

// check reports missing parts that the rest of the package relies on.
func (a *account) check() error {
	for _, each := range a.Clusters {
		if each == nil || each.ID == "" || each.Settings.MaintenancePolicy == nil {
			return errors.New("a cluster is incomplete")
		}
		for _, p := range each.Pools {
			if p == nil {
				return fmt.Errorf("a pool of cluster %s is incomplete", each.ID)
			}
			for _, n := range p.Nodes {
				if n == nil {
					return fmt.Errorf("a node of cluster %s is incomplete", each.ID)
				}
			}
		}
	}
	return nil
}

// write replaces the file atomically: a reader, even after a crash, finds either the old content or the new.
func (a *account) write(path string) error {
	content, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	partial, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial")
	if err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	defer os.Remove(partial.Name()) // does nothing once the file has been renamed
	_, err = partial.Write(append(content, '\n'))
	if err = errors.Join(err, partial.Sync(), partial.Close()); err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	if err := os.Rename(partial.Name(), path); err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	return nil
}

// save writes the state file, if there is one.
func (e *Emulator) save() error {
	if e.options.StateFile == "" {
		return nil
	}
	err := e.account.write(e.options.StateFile)
	if err != nil {
		e.options.Log.Error("Failed to save the clusters", "error", err.Error())
	}
	return err
}

// keep saves what a request has changed before the client gets the reply. If that fails, the reply is an error, but
// the change stays in effect.
func (e *Emulator) keep(done reply) reply {
	if !done.effective {
		return done
	}
	if err := e.save(); err != nil {
		failed := fail(http.StatusInternalServerError, "the emulator's state file cannot be written")
		failed.effective, failed.cluster = true, done.cluster
		return failed
	}
	return done
}

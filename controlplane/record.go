package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"example.com/operator-workshop/internal/private"
)

// record is the content of controlplane.json. It is replaced as a whole. A change that must be atomic, such as a
// restored snapshot or new certificates, is prepared in new folders, and takes effect when the record is written.
type record struct {
	Ports ports `json:"ports"`
	// Keys and Data are the generations of the folders pki-N and etcd-N that are in use.
	Keys int `json:"keys"`
	Data int `json:"data"`
	// Revision is etcd's revision after the last restore of a snapshot, or 0 if there was none.
	Revision int `json:"revision,omitempty"`
	// Stages is the name of kwok's configuration file. The name contains a hash of the file's content, so kwok is
	// replaced when the content changes.
	Stages string `json:"stages"`
	// APIServerFlags are the last ones given in Options. They stay in use when the control plane is opened without any.
	APIServerFlags map[string]string `json:"apiServerFlags,omitempty"`
	// Complete means that the control plane has been ready before, so it may contain data.
	Complete bool `json:"complete"`
}

const recordFile = "controlplane.json"

// ErrNotFound means that the folder doesn't exist or contains no control plane.
var ErrNotFound = errors.New("there is no control plane")

// DamagedError means that something in the folder is missing, empty or invalid. The method that returns it leaves the
// folder's content as it is. To start over, call Remove.
type DamagedError struct{ Reason string }

func (e *DamagedError) Error() string { return "the control plane's folder is damaged: " + e.Reason }

// load reads the record, and checks that some of the keys and certificates in use exist and are not empty. If the
// control plane has been ready before, the same must be true of etcd's data.
func (c *ControlPlane) load() (record, error) {
	content, err := os.ReadFile(c.path(recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, fmt.Errorf("%w in %s", ErrNotFound, c.dir)
	}
	if err != nil {
		return record{}, err
	}
	var found record
	if err := json.Unmarshal(content, &found); err != nil {
		return record{}, &DamagedError{fmt.Sprintf("%s cannot be read (%v)", recordFile, err)}
	}
	needed := []string{"ca.crt", "ca.key", "etcd.crt", "apiserver.crt", "service-accounts.key"}
	for i, name := range needed {
		needed[i] = c.pki(found).path(name)
	}
	if found.Complete {
		needed = append(needed, filepath.Join(c.data(found.Data), "member"))
	}
	for _, path := range needed {
		info, err := os.Stat(path)
		name, _ := filepath.Rel(c.dir, path) // both are inside the folder
		if err != nil {
			return record{}, &DamagedError{name + " is missing"}
		}
		if info.Size() == 0 {
			return record{}, &DamagedError{name + " is empty"}
		}
	}
	return found, nil
}

func (c *ControlPlane) save(r record) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return private.WriteFile(c.path(recordFile), append(content, '\n'))
}

func (c *ControlPlane) path(name string) string { return filepath.Join(c.dir, name) }

func (c *ControlPlane) pki(r record) pki { return pki{c.path("pki-" + strconv.Itoa(r.Keys))} }

func (c *ControlPlane) data(generation int) string { return c.path("etcd-" + strconv.Itoa(generation)) }

func (c *ControlPlane) log(component string) string {
	return filepath.Join(c.dir, "logs", component+".log")
}

// removeOthers removes from the control plane's folder the files and folders whose names start with prefix, except
// used, which is a name or a path. If used is "", it removes all of them.
func (c *ControlPlane) removeOthers(prefix, used string) error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, prefix) && name != filepath.Base(used) {
			if err := removeBelow(c.dir, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeBelow removes a file or folder from a folder. It doesn't follow symbolic links that lead out of the folder.
func removeBelow(folder, name string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return private.Explain(err)
	}
	defer root.Close()
	if err := root.RemoveAll(name); err != nil {
		return fmt.Errorf("remove %s: %w", filepath.Join(folder, name), private.Explain(err))
	}
	return nil
}

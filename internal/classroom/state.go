package classroom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// phase says how far the creation of a cluster got.
type phase string

const (
	// phaseCreating is written before anything is made. A cluster found in it holds
	// nothing that anybody put there, so it can be made again.
	phaseCreating phase = "creating"
	// phaseReady is written when the cluster is complete. From then on it holds a learner's work.
	phaseReady phase = "ready"
)

// record is what .workshop/NAME.json says about an embedded cluster, and .workshop/NAME.kind.json about one of kind.
type record struct {
	Phase phase `json:"phase"`
	// Root is the checkout the cluster was made in; its files name absolute paths.
	Root string `json:"root"`
	// Ports are those of an embedded cluster.
	Ports ports `json:"ports,omitzero"`
	// Container is the ID of the control plane of a kind cluster.
	Container string `json:"container,omitempty"`
}

// ports are the loopback ports of an embedded cluster.
type ports struct {
	APIServer         int `json:"kube-apiserver"`
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcd-peer"`
	ControllerManager int `json:"kube-controller-manager"`
	Scheduler         int `json:"kube-scheduler"`
	Kwok              int `json:"kwok-controller"`
}

// errNoRecord says that no cluster of that name was ever made here.
var errNoRecord = errors.New("no such cluster")

func readRecord(path string) (record, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, errNoRecord
	}
	if err != nil {
		return record{}, err
	}
	var found record
	if err := json.Unmarshal(content, &found); err != nil {
		return record{}, fmt.Errorf("%s cannot be read (%w)", filepath.Base(path), err)
	}
	if found.Phase != phaseCreating && found.Phase != phaseReady {
		return record{}, fmt.Errorf("%s names an unknown phase %q", filepath.Base(path), found.Phase)
	}
	return found, nil
}

func (r record) write(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(content, '\n'))
}

// writeFile replaces a file as a whole: a reader sees the old content or the new one.
func writeFile(path string, content []byte) error {
	partial := path + ".partial"
	if err := os.WriteFile(partial, content, 0o600); err != nil {
		return explainWrite(err)
	}
	return os.Rename(partial, path)
}

func makeDir(dir string) error { return explainWrite(os.MkdirAll(dir, 0o755)) }

// explainWrite says what to do about a directory that cannot be written.
func explainWrite(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the disk is full: free some space and run the same command again (%w)", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the workshop's folder cannot be written: clone it into a directory of yours (%w)", err)
	}
	return err
}

// lock lets one command at a time change what the file stands for.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	file := flock.New(path)
	locked, err := file.TryLock()
	if err == nil && !locked {
		_, err = file.TryLockContext(ctx, 50*time.Millisecond)
	}
	if ctx.Err() != nil {
		return nil, contextError(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, explainWrite(err))
	}
	return func() { _ = file.Close() }, nil
}

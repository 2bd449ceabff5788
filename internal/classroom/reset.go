package classroom

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Reset restores the snapshot that was taken when the cluster was new. A cluster that has to be made is empty anyway.
func (e *embedded) Reset(ctx context.Context) error {
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	found, err := readRecord(e.path(".json"))
	if err != nil || found.Phase != phaseReady {
		return e.up(ctx)
	}
	if err := e.checkFiles(found); err != nil {
		return err
	}
	if _, err := os.Stat(e.freshSnapshot()); err != nil {
		return e.damaged("its first snapshot is missing")
	}
	if err := e.restoreSnapshot(ctx, found); err != nil {
		return err
	}
	found.Phase = phaseResetting
	if err := found.write(e.path(".json")); err != nil {
		return err
	}
	return e.finishReset(ctx, found)
}

// restored is where a reset makes etcd's new data, until they replace what the cluster holds.
func (e *embedded) restored() string { return filepath.Join(e.dir, "etcd-restored") }

// restoreSnapshot makes etcd's data anew, beside those in use.
func (e *embedded) restoreSnapshot(ctx context.Context, found record) error {
	if err := removeBelow(e.state, e.restored()); err != nil {
		return err
	}
	peer := fmt.Sprintf("https://%s:%d", loopback, found.Ports.EtcdPeer)
	return e.runner.run(ctx, "etcdutl", "snapshot", "restore", e.runner.relative(e.freshSnapshot()), "--data-dir", e.runner.relative(e.restored()),
		"--name", etcdName, "--initial-cluster", etcdName+"="+peer, "--initial-advertise-peer-urls", peer)
}

// finishReset puts the restored data into place. After a kill at any point, it can be started again.
func (e *embedded) finishReset(ctx context.Context, found record) error {
	if err := endAll(ctx, e.dir); err != nil {
		return err
	}
	if _, err := os.Stat(e.restored()); err == nil {
		data := filepath.Join(e.dir, "etcd")
		if err := removeBelow(e.state, data); err != nil {
			return err
		}
		if err := os.Rename(e.restored(), data); err != nil {
			return explainWrite(err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	found.Phase = phaseReady
	if err := found.write(e.path(".json")); err != nil {
		return err
	}
	return e.restart(ctx, found)
}

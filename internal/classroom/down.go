package classroom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Down ends the cluster's processes and removes its files.
func (e *embedded) Down(ctx context.Context) error {
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	_, recordErr := readRecord(e.path(".json"))
	if _, err := os.Stat(e.dir); err != nil && errors.Is(recordErr, errNoRecord) {
		fmt.Fprintf(e.options.Out, "There is no cluster %s.\n", e.options.Name)
		return endAll(ctx, e.dir)
	}
	if err := e.endOriginal(ctx); err != nil {
		return err
	}
	if err := e.remove(ctx); err != nil {
		return err
	}
	fmt.Fprintf(e.options.Out, "Cluster %s is removed.\n", e.options.Name)
	// The lock stays: removing it while another command waits for it would let both in.
	return os.RemoveAll(e.runner.log)
}

// remove leaves nothing of the cluster: no process, no file. The record goes first and the folder last: after a kill
// between the two, the next command finds no cluster, and removes the files that are left.
func (e *embedded) remove(ctx context.Context) error {
	if err := endAll(ctx, e.dir); err != nil {
		return err
	}
	if err := removeBelow(e.state, e.path(".json"), e.path(".json.partial")); err != nil {
		return err
	}
	// kwokctl locks the kubeconfig while it writes it. Killed then, it leaves the lock behind, and every later
	// kwokctl would go on without a kubeconfig.
	return errors.Join(unchoose(ctx, e.state, e.Kubeconfig()),
		removeBelow(e.state, e.Kubeconfig(), e.Kubeconfig()+".lock", e.path(".yaml"), e.path(".yaml.partial"), e.dir))
}

// removeBelow removes files and folders below a folder, and follows no symbolic link that leads out of it.
func removeBelow(folder string, paths ...string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return explainWrite(err)
	}
	defer root.Close()
	for _, path := range paths {
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if err := root.RemoveAll(name); err != nil {
			return fmt.Errorf("remove %s: %w", path, explainWrite(err))
		}
	}
	return nil
}

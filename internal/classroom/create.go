package classroom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// create makes the cluster from nothing. Creations wait for each other, also
// those of other checkouts, because two at the same moment can take each other's ports.
func (e *embedded) create(ctx context.Context) error {
	shared := filepath.Join(os.TempDir(), fmt.Sprintf("operator-workshop-%d", os.Getuid()))
	unlock, err := lock(ctx, filepath.Join(shared, "create.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	for attempt := 1; ; attempt++ {
		err := e.createOnce(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if removeErr := e.remove(ctx); removeErr != nil {
			return errors.Join(err, removeErr)
		}
		if attempt == createAttempts || errors.Is(err, errPortTaken) {
			return err
		}
		fmt.Fprintf(e.options.Out, "Attempt %d failed (%v): trying again.\n", attempt, err)
	}
}

func (e *embedded) createOnce(ctx context.Context) error {
	if err := e.remove(ctx); err != nil {
		return err
	}
	chosen, err := e.choosePorts()
	if err != nil {
		return err
	}
	made := record{Phase: phaseCreating, Root: e.options.Repo.Root, Ports: chosen}
	if err := made.write(e.path(".json")); err != nil {
		return err
	}
	if err := e.writeConfig(chosen); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err = e.start(limited, "create", "cluster", "--name", e.options.Name,
		"--config", e.runner.relative(e.path(".yaml")), "--kubeconfig", e.runner.relative(e.Kubeconfig()))
	if err != nil {
		return err
	}
	// The server serves already; it takes the nodes while it gets everything else ready.
	err = e.runner.run(limited, "kwokctl", "scale", "node", "--name", e.options.Name, "--replicas", strconv.Itoa(e.options.Nodes))
	if err != nil {
		return err
	}
	if err := e.waitReady(limited); err != nil {
		return err
	}
	err = e.waitUsable(limited)
	if errors.Is(err, errComponentEnded) {
		// On a slow machine the controller manager gives up before the API server is ready.
		err = e.restart(limited, made)
	}
	if err != nil {
		return err
	}
	err = e.runner.run(limited, "kwokctl", "snapshot", "save", "--name", e.options.Name, "--path", e.runner.relative(e.freshSnapshot()))
	if err != nil {
		return err
	}
	made.Phase = phaseReady
	if err := made.write(e.path(".json")); err != nil {
		return err
	}
	return e.choose()
}

// freshSnapshot is where the state of the new cluster is kept for Reset.
func (e *embedded) freshSnapshot() string { return filepath.Join(e.dir, "fresh.db") }

func (e *embedded) choosePorts() (ports, error) {
	free, err := freePorts(6)
	if err != nil {
		return ports{}, err
	}
	chosen := ports{APIServer: free[0], Etcd: free[1], EtcdPeer: free[2], ControllerManager: free[3], Scheduler: free[4], Kwok: free[5]}
	if e.options.Port == 0 {
		return chosen, nil
	}
	chosen.APIServer = e.options.Port
	return chosen, requirePort(e.options.Port, "kube-apiserver", "choose another with PORT=, or leave PORT out for a free one")
}

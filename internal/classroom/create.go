package classroom

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
)

// create makes the cluster from nothing. Two creations at the same moment can
// take each other's ports, though they seldom do: then one is tried again.
func (e *embedded) create(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := e.createOnce(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if errors.Is(err, errPortTaken) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return errors.Join(err, e.remove(ctx))
		}
		if attempt == createAttempts {
			// The files stay until the next command, because the error names the logs.
			return errors.Join(err, endAll(ctx, e.dir))
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
	made := record{Phase: phaseCreating, Root: e.options.Repo.Root, Ports: chosen, EtcdTLS: true}
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
	if err := e.waitReady(limited, chosen); err != nil {
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
	return e.choose(ctx)
}

// freshSnapshot is where the state of the new cluster is kept for Reset.
func (e *embedded) freshSnapshot() string { return filepath.Join(e.dir, "fresh.db") }

func (e *embedded) choosePorts() (ports, error) {
	free, err := freePorts(5)
	if err != nil {
		return ports{}, err
	}
	chosen := ports{APIServer: free[0], Etcd: free[1], EtcdPeer: free[2], ControllerManager: free[3], Scheduler: free[4]}
	if e.options.Port == 0 {
		return chosen, nil
	}
	chosen.APIServer = e.options.Port
	return chosen, requirePort(e.options.Port, "kube-apiserver", "choose another with PORT=, or leave PORT out for a free one")
}

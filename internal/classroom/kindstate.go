package classroom

import (
	"context"
	"fmt"
	"slices"
)

// kindState tells whether a kind cluster exists, and whose it is.
type kindState int

const (
	kindAbsent kindState = iota
	// kindHalfMade is a cluster that was begun here and never completed: it holds nothing of anybody.
	kindHalfMade
	// kindOurs was made in this checkout.
	kindOurs
	// kindForeign has the name, but someone else made it.
	kindForeign
)

// kindFound is what find finds.
type kindFound struct {
	state kindState
	nodes []container
}

// find locks the cluster and looks for it.
func (k *kind) find(ctx context.Context) (unlock func(), found kindFound, err error) {
	unlock, err = lock(ctx, k.path(".lock"), k.options.Out, lockLimit)
	if err != nil {
		return nil, kindFound{}, err
	}
	found, err = k.look(ctx)
	if err != nil {
		unlock()
		return nil, kindFound{}, err
	}
	return unlock, found, nil
}

func (k *kind) look(ctx context.Context) (kindFound, error) {
	if err := requireEngine(ctx); err != nil {
		return kindFound{}, err
	}
	nodes, err := containers(ctx, k.cluster)
	if err != nil {
		return kindFound{}, err
	}
	// Without a record that can be read nobody knows whose the cluster is.
	made, err := readRecord(k.path(".json"))
	known := err == nil
	switch {
	case known && made.Phase == phaseCreating:
		return kindFound{kindHalfMade, nodes}, nil
	case len(nodes) == 0:
		return kindFound{kindAbsent, nil}, nil
	case known && made.Container == controlPlane(nodes):
		return kindFound{kindOurs, nodes}, nil
	}
	return kindFound{kindForeign, nodes}, nil
}

// controlPlane is the ID of the container with the control plane, or "".
func controlPlane(nodes []container) string {
	at := slices.IndexFunc(nodes, func(node container) bool { return node.role == "control-plane" })
	if at < 0 {
		return ""
	}
	return nodes[at].id
}

// foreign is the error for a cluster that someone else made.
func (k *kind) foreign() error {
	return fmt.Errorf("there is a kind cluster %s that was not made here, so it is left alone: choose another name, such as NAME=mine; if it is yours, `bin/kind delete cluster --name %s` removes it",
		k.cluster, k.cluster)
}

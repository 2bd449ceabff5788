package classroom

import (
	"context"
	"fmt"
	"slices"
)

// kindState says whether a kind cluster exists and whether this checkout made it.
type kindState int

const (
	kindAbsent kindState = iota
	// kindHalfMade is a cluster whose creation began here and never completed, so it holds no one's work.
	kindHalfMade
	// kindOurs is a cluster that was made in this checkout.
	kindOurs
	// kindForeign is a cluster with the name of this checkout's cluster, but no record shows that it was made here.
	kindForeign
)

type kindFound struct {
	state kindState
	nodes []container
}

// find locks the cluster, and returns its state and its nodes. Call unlock afterwards, unless find returns an error.
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
	// Without a readable record, there is no way to know who made the cluster.
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

// controlPlane returns the ID of the control plane's container, or "".
func controlPlane(nodes []container) string {
	at := slices.IndexFunc(nodes, func(node container) bool { return node.role == "control-plane" })
	if at < 0 {
		return ""
	}
	return nodes[at].id
}

// foreign returns the error for a cluster that, as far as is known, wasn't made in this checkout.
func (k *kind) foreign() error {
	return fmt.Errorf("there is a kind cluster %s that was not made here, so it is left alone: choose another name, such as NAME=mine; if it is yours, `bin/kind delete cluster --name %s` removes it",
		k.cluster, k.cluster)
}

package doks

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"time"
)

// Planes make real control planes for the clusters. Make, SetNodes and Delete are called one at a time; Access may be
// called at any time.
type Planes interface {
	// Make makes a cluster's control plane, or finds it again, and returns the URL of its API server.
	Make(ctx context.Context, id string) (server string, err error)
	// SetNodes gives a plane these nodes and no others.
	SetNodes(ctx context.Context, id string, nodes []PlaneNode) error
	// Access makes administrator credentials. They last as long as requested or, if that is too short for the plane,
	// longer.
	Access(ctx context.Context, id string, lifetime time.Duration) (Access, error)
	// Delete removes a plane. A missing plane is not an error.
	Delete(ctx context.Context, id string) error
}

// PlaneNode describes a node that a plane should have.
type PlaneNode struct {
	Name   string
	Labels map[string]string
	Taints []Taint
	// Draining nodes take no more pods.
	Draining bool
}

const (
	// workInterval is how often the worker looks for changes that have become due.
	workInterval = 250 * time.Millisecond
	// troubleInterval is how long the worker waits before it retries what failed.
	troubleInterval = 2 * time.Second
)

// startWorker starts the worker, which keeps the planes in line with the clusters. Creating a plane takes seconds, so
// no request waits for it.
func (e *Emulator) startWorker() {
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	e.working.Go(func() {
		applied := map[string][]PlaneNode{}
		for ctx.Err() == nil {
			interval, wake := workInterval, e.wake
			if !e.work(ctx, applied) {
				interval, wake = troubleInterval, nil
			}
			timer := e.options.Clock.NewTimer(interval)
			select {
			case <-ctx.Done():
			case <-wake:
			case <-timer.C():
			}
			timer.Stop()
		}
	})
}

// nudge wakes the worker, because something may have changed.
func (e *Emulator) nudge() {
	select {
	case e.wake <- struct{}{}:
	default: // it has been woken already, or there is no worker
	}
}

// work deletes planes, makes planes, and gives them their nodes. It returns false if a step failed that must be
// retried. Making a plane isn't retried: if it fails, the cluster enters StateError.
func (e *Emulator) work(ctx context.Context, applied map[string][]PlaneNode) bool {
	doomed, unmade := e.outstanding()
	well := true
	for _, id := range doomed {
		well = e.deletePlane(ctx, id) && well
		delete(applied, id)
	}
	for _, id := range unmade {
		e.makePlane(ctx, id)
	}
	for id, nodes := range e.wantedNodes() {
		if last, done := applied[id]; done && reflect.DeepEqual(last, nodes) {
			continue
		}
		if !e.setNodes(ctx, id, nodes) {
			well = false
			continue
		}
		applied[id] = nodes
	}
	return well
}

// outstanding returns the IDs of the clusters whose planes must be deleted, and of those whose planes must be made or,
// after a restart, found again.
func (e *Emulator) outstanding() (doomed, unmade []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.advance(e.options.Clock.Now()) {
		_ = e.save() // save has logged the error; the next change saves again
	}
	for _, each := range e.account.Clusters {
		fails := each.State == StateError || each.Next == StateError
		if e.addresses[each.ID] == "" && !each.isBeingDeleted() && !fails {
			unmade = append(unmade, each.ID)
		}
	}
	return slices.Clone(e.account.Doomed), unmade
}

func (e *Emulator) deletePlane(ctx context.Context, id string) bool {
	if err := e.planes.Delete(ctx, id); err != nil {
		e.complain(ctx, "Failed to delete a control plane", id, err)
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.addresses, id)
	e.account.Doomed = slices.DeleteFunc(e.account.Doomed, func(each string) bool { return each == id })
	_ = e.save() // save has logged the error; the next change saves again
	return true
}

func (e *Emulator) makePlane(ctx context.Context, id string) {
	server, err := e.planes.Make(ctx, id)
	if err != nil {
		e.complain(ctx, "Failed to make a control plane", id, err)
	}
	if ctx.Err() != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	found := e.account.find(id)
	if found == nil {
		return // the cluster was deleted in the meantime, and the worker will delete its plane
	}
	if err != nil {
		found.enter(StateError, "the control plane could not be made", e.options.Clock.Now())
	} else {
		e.addresses[id] = server
		found.moveTo(server)
	}
	_ = e.save() // save has logged the error; the next change saves again
}

// moveTo changes the cluster's address if it already has one. Otherwise start sets the address later.
func (c *cluster) moveTo(server string) {
	if c.Endpoint != "" {
		c.Endpoint = server
	}
}

// wantedNodes returns the nodes that each plane should have now.
func (e *Emulator) wantedNodes() map[string][]PlaneNode {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.options.Clock.Now()
	e.advance(now)
	wanted := map[string][]PlaneNode{}
	for _, each := range e.account.Clusters {
		if e.addresses[each.ID] != "" && !each.isBeingDeleted() {
			wanted[each.ID] = each.planeNodes(now)
		}
	}
	return wanted
}

func (c *cluster) planeNodes(now time.Time) []PlaneNode {
	nodes := []PlaneNode{}
	for _, p := range c.Pools {
		for _, n := range p.Nodes {
			due := n.State == nodeProvisioning && !n.Due.IsZero() && !now.Before(n.Due)
			if due || n.State == nodeRunning || n.State == nodeDraining {
				nodes = append(nodes, c.planeNode(p, n))
			}
		}
	}
	slices.SortFunc(nodes, func(a, b PlaneNode) int { return cmp.Compare(a.Name, b.Name) })
	return nodes
}

// planeNode describes a node for its plane, with the labels that DigitalOcean gives its nodes. They take precedence
// over the caller's.
func (c *cluster) planeNode(p *pool, n *node) PlaneNode {
	labels := map[string]string{}
	maps.Copy(labels, p.Labels)
	maps.Copy(labels, map[string]string{
		"doks.digitalocean.com/node-id":      n.ID,
		"doks.digitalocean.com/node-pool":    p.Name,
		"doks.digitalocean.com/node-pool-id": p.ID,
		"doks.digitalocean.com/version":      c.Version,
		"node.kubernetes.io/instance-type":   p.Size,
		"topology.kubernetes.io/region":      c.Region,
	})
	return PlaneNode{Name: n.Name, Labels: labels, Taints: slices.Clone(p.Taints), Draining: n.State == nodeDraining}
}

// setNodes gives a plane its nodes, and records which nodes have arrived and which have gone. It returns false if the
// plane's nodes could not be set.
func (e *Emulator) setNodes(ctx context.Context, id string, nodes []PlaneNode) bool {
	if err := e.planes.SetNodes(ctx, id, nodes); err != nil {
		e.complain(ctx, "Failed to set the nodes of a control plane", id, err)
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	found := e.account.find(id)
	if found == nil {
		return true
	}
	for _, p := range found.Pools {
		for _, n := range p.Nodes {
			n.InPlane = slices.ContainsFunc(nodes, func(each PlaneNode) bool { return each.Name == n.Name })
		}
	}
	_ = e.save() // save has logged the error; the next change saves again
	return true
}

// complain logs an error, unless the worker was stopped.
func (e *Emulator) complain(ctx context.Context, what, id string, err error) {
	if ctx.Err() == nil {
		e.options.Log.Error(what, "cluster", id, "error", err.Error())
	}
}

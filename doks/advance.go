package doks

import (
	"fmt"
	"slices"
	"time"
)

// advance makes the changes that are due by now, except those that must wait for a plane, and reports whether it
// changed anything. It is called before anything looks at a cluster's state, so without planes, no timer has to run.
func (e *Emulator) advance(now time.Time) (changed bool) {
	for _, each := range slices.Clone(e.account.Clusters) {
		changed = e.advanceCluster(each, now) || changed
		for _, p := range each.Pools {
			changed = e.advanceNodes(each, p, now) || changed
		}
	}
	return changed
}

func (e *Emulator) advanceCluster(c *cluster, now time.Time) bool {
	if c.Due.IsZero() || now.Before(c.Due) {
		return false
	}
	switch c.State {
	case StateProvisioning:
		return e.finishProvisioning(c, now)
	case StateUpgrading:
		c.Version = c.Target
		c.enter(StateRunning, "", c.Due)
	case StateDeleted, StateDeleting:
		e.remove(c)
	default:
		return false
	}
	return true
}

// finishProvisioning ends provisioning in the state chosen for the cluster. With planes, it does nothing until the
// cluster has its plane, unless provisioning is meant to fail.
func (e *Emulator) finishProvisioning(c *cluster, now time.Time) bool {
	next, at := c.Next, c.Due
	if next == StateError {
		c.enter(StateError, "provisioning failed", at)
		return true
	}
	if e.planes != nil && e.addresses[c.ID] == "" {
		return false
	}
	if e.planes != nil {
		at = now
	}
	message := ""
	if next == StateDegraded {
		message = "the control plane does not answer all requests"
	}
	c.enter(next, message, at)
	e.start(c, at)
	return true
}

// start gives the cluster its address, and sets when the nodes that have been waiting for the cluster are due to run.
func (e *Emulator) start(c *cluster, at time.Time) {
	if c.Endpoint == "" {
		c.Endpoint = e.endpoint(c.ID)
	}
	for _, p := range c.Pools {
		for _, each := range p.Nodes {
			if each.State == nodeProvisioning && each.Due.IsZero() {
				each.Due = at.Add(e.options.NodeTime)
			}
		}
	}
}

func (e *Emulator) endpoint(id string) string {
	if e.planes != nil {
		return e.addresses[id]
	}
	// RFC 2606 reserves .invalid, so this name never resolves.
	return fmt.Sprintf("https://%s.k8s.invalid", id)
}

func (e *Emulator) advanceNodes(c *cluster, p *pool, now time.Time) (changed bool) {
	p.Nodes = slices.DeleteFunc(p.Nodes, func(n *node) bool {
		before := n.State
		gone := e.advanceNode(n, now)
		changed = changed || gone || n.State != before
		return gone
	})
	if changed {
		c.Updated = now
	}
	return changed
}

// advanceNode changes the node's state if that is due, and reports whether the node is gone.
func (e *Emulator) advanceNode(n *node, now time.Time) (gone bool) {
	if n.Due.IsZero() || now.Before(n.Due) {
		return false
	}
	switch n.State {
	case nodeProvisioning:
		if e.planes == nil || n.InPlane {
			n.State, n.Updated, n.Due = nodeRunning, n.Due, time.Time{}
		}
	case nodeDraining:
		n.State, n.Updated, n.Due = nodeDeleting, n.Due, n.Due.Add(e.options.NodeTime)
		return e.advanceNode(n, now)
	case nodeDeleting:
		return e.planes == nil || !n.InPlane
	}
	return false
}

// remove forgets a cluster, and records what it leaves behind: resources and, with planes, its plane.
func (e *Emulator) remove(c *cluster) {
	e.account.Clusters = slices.DeleteFunc(e.account.Clusters, func(each *cluster) bool { return each == c })
	e.account.Leftovers = e.account.Leftovers.with(c.Resources)
	if e.planes != nil {
		e.account.Doomed = append(e.account.Doomed, c.ID)
	}
}

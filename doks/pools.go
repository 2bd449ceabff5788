package doks

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// poolRequest is a pool that a request wants: a new one, or an existing one with an update's values (see with).
type poolRequest struct {
	Name      string            `json:"name"`
	Size      string            `json:"size"`
	Count     int               `json:"count"`
	Tags      []string          `json:"tags"`
	Labels    map[string]string `json:"labels"`
	Taints    []Taint           `json:"taints"`
	AutoScale bool              `json:"auto_scale"`
	MinNodes  int               `json:"min_nodes"`
	MaxNodes  int               `json:"max_nodes"`
}

// poolUpdate is the body of a request to update a pool. The name and the count are required; any other field that is
// absent keeps its value.
type poolUpdate struct {
	Name      string             `json:"name"`
	Count     *int               `json:"count"`
	Tags      *[]string          `json:"tags"`
	Labels    *map[string]string `json:"labels"`
	Taints    *[]Taint           `json:"taints"`
	AutoScale *bool              `json:"auto_scale"`
	MinNodes  *int               `json:"min_nodes"`
	MaxNodes  *int               `json:"max_nodes"`
}

// newPool makes a pool from a checked request. due is when the pool's nodes should be running; if it is zero, the
// nodes wait for the cluster's control plane.
func (e *Emulator) newPool(wanted poolRequest, now, due time.Time) *pool {
	made := &pool{ID: uuid.NewString(), Size: wanted.Size}
	made.take(wanted)
	e.resize(made, now, due)
	return made
}

// take stores wanted in the pool, except for the machine size, which never changes. With autoscaling, the count is at
// least MinNodes; without it, both bounds are 0.
func (p *pool) take(wanted poolRequest) {
	p.Name, p.Count, p.AutoScale = wanted.Name, wanted.Count, wanted.AutoScale
	p.Tags, p.Labels, p.Taints = unique(wanted.Tags), maps.Clone(wanted.Labels), slices.Clone(wanted.Taints)
	p.Min, p.Max = 0, 0
	if wanted.AutoScale {
		p.Min, p.Max = wanted.MinNodes, wanted.MaxNodes
		p.Count = max(p.Count, p.Min)
	}
}

// resize adds nodes, or starts to remove the newest, until the pool has p.Count live nodes (see live).
func (e *Emulator) resize(p *pool, now, due time.Time) {
	for p.live() < p.Count {
		p.Nodes = append(p.Nodes, e.newNode(p.Name, now, due))
	}
	for i := len(p.Nodes) - 1; p.live() > p.Count; i-- {
		if state := p.Nodes[i].State; state == nodeProvisioning || state == nodeRunning {
			e.drain(p.Nodes[i], now, false)
		}
	}
}

func (e *Emulator) newNode(poolName string, now, due time.Time) *node {
	e.account.Droplets++
	return &node{
		ID: uuid.NewString(), Name: poolName + "-" + suffix(), Droplet: fmt.Sprint(400000000 + e.account.Droplets),
		State: nodeProvisioning, Due: due, Created: now, Updated: now,
	}
}

// suffix returns random characters that distinguish the nodes of a pool, like DigitalOcean's suffixes.
func suffix() string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	name := make([]byte, 5)
	for i := range name {
		name[i] = letters[rand.IntN(len(letters))]
	}
	return string(name)
}

// drain starts the removal of a node: the node drains first, unless skip is set or, with planes, its cluster's plane
// doesn't have it yet.
func (e *Emulator) drain(n *node, now time.Time, skip bool) {
	n.State, n.Updated, n.Due = nodeDraining, now, now.Add(e.options.NodeTime)
	if skip || !n.InPlane && e.planes != nil {
		n.State = nodeDeleting
	}
}

// nodeDue returns the time at which a node that is added now should be running, or zero if the node must wait for its
// cluster's control plane.
func (e *Emulator) nodeDue(c *cluster, now time.Time) time.Time {
	if c.Endpoint == "" {
		return time.Time{}
	}
	return now.Add(e.options.NodeTime)
}

func (e *Emulator) listPools(x *exchange) reply {
	found := e.account.find(x.ids["cluster"])
	if found == nil {
		return notFound()
	}
	return reply{status: http.StatusOK, body: map[string]any{"node_pools": found.poolViews()}}
}

func (e *Emulator) createPool(x *exchange) reply {
	found, refused := e.changeable(x)
	if found == nil {
		return refused
	}
	var wanted poolRequest
	if refused, ok := x.decode(&wanted); !ok {
		return refused
	}
	message := checkPools([]poolRequest{wanted})
	if message == "" {
		message = found.checkPoolName(wanted.Name, nil)
	}
	if message == "" {
		message = e.checkDroplets(reserve([]poolRequest{wanted}))
	}
	if message != "" {
		return invalid(message)
	}
	made := e.newPool(wanted, x.now, e.nodeDue(found, x.now))
	found.Pools = append(found.Pools, made)
	found.Updated = x.now
	return shownPool(http.StatusCreated, found, made)
}

func (c *cluster) checkPoolName(name string, owner *pool) string {
	if slices.ContainsFunc(c.Pools, func(p *pool) bool { return p.Name == name && p != owner }) {
		return "a node pool with this name already exists"
	}
	return ""
}

func (e *Emulator) getPool(x *exchange) reply {
	found := e.account.find(x.ids["cluster"])
	if found == nil || found.pool(x.ids["pool"]) == nil {
		return notFound()
	}
	return shownPool(http.StatusOK, found, found.pool(x.ids["pool"]))
}

func (e *Emulator) updatePool(x *exchange) reply {
	found, refused := e.changeable(x)
	if found == nil {
		return refused
	}
	changed := found.pool(x.ids["pool"])
	if changed == nil {
		return notFound()
	}
	var update poolUpdate
	if refused, ok := x.decode(&update); !ok {
		return refused
	}
	if update.Name == "" || update.Count == nil {
		return invalid("validation error: name and count are required")
	}
	wanted := changed.with(update)
	if message := e.checkPoolUpdate(found, changed, wanted); message != "" {
		return invalid(message)
	}
	changed.take(wanted)
	e.resize(changed, x.now, e.nodeDue(found, x.now))
	found.Updated = x.now
	return shownPool(http.StatusAccepted, found, changed)
}

// with returns the pool's values, overridden by those that an update contains.
func (p *pool) with(update poolUpdate) poolRequest {
	wanted := poolRequest{Name: update.Name, Size: p.Size, Count: *update.Count, Tags: p.Tags, Labels: p.Labels, Taints: p.Taints, AutoScale: p.AutoScale, MinNodes: p.Min, MaxNodes: p.Max}
	replace(&wanted.Tags, update.Tags)
	replace(&wanted.Labels, update.Labels)
	replace(&wanted.Taints, update.Taints)
	replace(&wanted.AutoScale, update.AutoScale)
	replace(&wanted.MinNodes, update.MinNodes)
	replace(&wanted.MaxNodes, update.MaxNodes)
	return wanted
}

func replace[T any](current, update *T) {
	if update != nil {
		*current = *update
	}
}

func (e *Emulator) checkPoolUpdate(c *cluster, current *pool, wanted poolRequest) string {
	if message := checkPools([]poolRequest{wanted}); message != "" {
		return message
	}
	if message := c.checkPoolName(wanted.Name, current); message != "" {
		return message
	}
	grown := reserve([]poolRequest{wanted})
	grown.additional -= current.reserved()
	return e.checkDroplets(grown)
}

// deletePool removes a pool and its nodes immediately. A cluster's last pool can't be deleted.
func (e *Emulator) deletePool(x *exchange) reply {
	found, refused := e.changeable(x)
	if found == nil {
		return refused
	}
	gone := found.pool(x.ids["pool"])
	if gone == nil {
		return notFound()
	}
	if len(found.Pools) == 1 {
		return invalid("a cluster needs at least one node pool")
	}
	found.Pools = slices.DeleteFunc(found.Pools, func(p *pool) bool { return p == gone })
	found.Updated = x.now
	return reply{status: http.StatusNoContent, effective: true}
}

// shownPool returns a reply that contains a pool.
func shownPool(status int, c *cluster, p *pool) reply {
	return reply{
		status: status, cluster: c, effective: status != http.StatusOK,
		body: map[string]NodePool{"node_pool": c.poolView(p)},
	}
}

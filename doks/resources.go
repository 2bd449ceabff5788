package doks

import (
	"net/http"
	"slices"

	"github.com/google/uuid"
)

// Resources are resources that the users of one or more clusters made in the account. If a cluster is deleted without
// its resources, they stay there, and still cost money.
type Resources struct {
	LoadBalancers   []Resource `json:"load_balancers"`
	Volumes         []Resource `json:"volumes"`
	VolumeSnapshots []Resource `json:"volume_snapshots"`
}

// Resource is a load balancer, a volume or a volume snapshot.
type Resource struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// selection is the body of a selective deletion: the IDs of the resources to delete with the cluster.
type selection struct {
	LoadBalancers   []string `json:"load_balancers"`
	Volumes         []string `json:"volumes"`
	VolumeSnapshots []string `json:"volume_snapshots"`
}

// with returns the resources of both sets. The lists in the result are never nil.
func (r Resources) with(more Resources) Resources {
	return Resources{
		LoadBalancers:   append(append([]Resource{}, r.LoadBalancers...), more.LoadBalancers...),
		Volumes:         append(append([]Resource{}, r.Volumes...), more.Volumes...),
		VolumeSnapshots: append(append([]Resource{}, r.VolumeSnapshots...), more.VolumeSnapshots...),
	}
}

func (r Resources) without(gone selection) Resources {
	return Resources{
		LoadBalancers:   without(r.LoadBalancers, gone.LoadBalancers),
		Volumes:         without(r.Volumes, gone.Volumes),
		VolumeSnapshots: without(r.VolumeSnapshots, gone.VolumeSnapshots),
	}
}

func without(resources []Resource, ids []string) []Resource {
	return slices.DeleteFunc(slices.Clone(resources), func(r Resource) bool { return slices.Contains(ids, r.ID) })
}

// holds reports whether r contains every selected resource.
func (r Resources) holds(wanted selection) bool {
	return holds(r.LoadBalancers, wanted.LoadBalancers) && holds(r.Volumes, wanted.Volumes) && holds(r.VolumeSnapshots, wanted.VolumeSnapshots)
}

func holds(resources []Resource, ids []string) bool {
	for _, id := range ids {
		if !slices.ContainsFunc(resources, func(r Resource) bool { return r.ID == id }) {
			return false
		}
	}
	return true
}

// named makes resources with the given names.
func named(names []string) []Resource {
	made := make([]Resource, len(names))
	for i, name := range names {
		made[i] = Resource{ID: uuid.NewString(), Name: name}
	}
	return made
}

func (e *Emulator) listResources(x *exchange) reply {
	found := e.account.find(x.ids["cluster"])
	if found == nil {
		return notFound()
	}
	return reply{status: http.StatusOK, body: found.Resources.with(Resources{})}
}

// deleteSelective deletes a cluster and the selected resources. If a deletion has already started, it changes nothing
// and succeeds: otherwise a repeated request would fail, because the first one has removed the resources.
func (e *Emulator) deleteSelective(x *exchange) reply {
	var wanted selection
	if refused, ok := x.decode(&wanted); !ok {
		return refused
	}
	found := e.account.find(x.ids["cluster"])
	if found == nil {
		return notFound()
	}
	if found.isBeingDeleted() {
		return e.deleteCluster(x)
	}
	if !found.Resources.holds(wanted) {
		return invalid("validation error: a selected resource is not associated with the cluster")
	}
	found.Resources = found.Resources.without(wanted)
	return e.deleteCluster(x)
}

// deleteDangerous deletes a cluster with all of its resources, or changes nothing if a deletion has already started.
func (e *Emulator) deleteDangerous(x *exchange) reply {
	if found := e.account.find(x.ids["cluster"]); found != nil && !found.isBeingDeleted() {
		found.Resources = Resources{}
	}
	return e.deleteCluster(x)
}

// Leftovers returns the resources that deleted clusters left behind.
func (e *Emulator) Leftovers() Resources {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance(e.options.Clock.Now())
	return e.account.Leftovers.with(Resources{})
}

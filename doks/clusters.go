package doks

import (
	"net/http"
	"time"

	"github.com/google/uuid"
)

// createRequest is the body of a create request.
type createRequest struct {
	Name          string        `json:"name"`
	Region        string        `json:"region"`
	Version       string        `json:"version"`
	Tags          []string      `json:"tags"`
	HA            *bool         `json:"ha"`
	VPC           string        `json:"vpc_uuid"`
	WorkerSubnet  string        `json:"worker_subnet_uuid"`
	ClusterSubnet string        `json:"cluster_subnet"`
	ServiceSubnet string        `json:"service_subnet"`
	Isolated      bool          `json:"isolated_workers"`
	NodePools     []poolRequest `json:"node_pools"`
	settings
}

// updateRequest is the body of an update. The name is required; other absent fields keep their values.
type updateRequest struct {
	Name string    `json:"name"`
	Tags *[]string `json:"tags"`
	HA   *bool     `json:"ha"`
	settings
}

func (e *Emulator) listClusters(x *exchange) reply {
	views := []Cluster{}
	for _, each := range e.account.Clusters {
		if !x.lags(FaultLaggingList, each) {
			views = append(views, each.view())
		}
	}
	shown, links := paginate(views, x.request)
	return reply{status: http.StatusOK, body: map[string]any{
		"kubernetes_clusters": shown, "links": links, "meta": map[string]int{"total": len(views)},
	}}
}

// lags reports whether a fault of this kind hides the cluster, because it was created too recently.
func (x *exchange) lags(kind FaultKind, c *cluster) bool {
	return x.fault != nil && x.fault.Kind == kind && x.now.Sub(c.Created) < time.Duration(x.fault.Delay)
}

// createCluster checks the request and adds the cluster. No other request takes effect in between.
func (e *Emulator) createCluster(x *exchange) reply {
	var wanted createRequest
	if refused, ok := x.decode(&wanted); !ok {
		return refused
	}
	if message := e.checkCreate(wanted); message != "" {
		return invalid(message)
	}
	made := e.newCluster(wanted, x.now)
	made.Next = e.options.EndState
	if x.fault != nil && x.fault.Kind == FaultEndState {
		made.Next = x.fault.State
	}
	e.account.Clusters = append(e.account.Clusters, made)
	return shown(http.StatusCreated, made)
}

// newCluster makes a cluster from a checked request, with defaults for the fields that the caller left out.
func (e *Emulator) newCluster(wanted createRequest, now time.Time) *cluster {
	version, _ := resolveVersion(wanted.Version)
	made := &cluster{
		ID: uuid.NewString(), Name: wanted.Name, Region: wanted.Region, Version: version,
		Tags: unique(wanted.Tags), HA: minorNumber(version) >= haDefaultMinor,
		VPC: wanted.VPC, Worker: wanted.WorkerSubnet, PodNet: wanted.ClusterSubnet, Services: wanted.ServiceSubnet,
		Isolated: wanted.Isolated, Settings: wanted.withDefaults(),
		State: StateProvisioning, Created: now, Updated: now,
	}
	made.schedule(now.Add(e.options.ProvisionTime), StateRunning)
	if wanted.HA != nil {
		made.HA = *wanted.HA
	}
	if made.VPC == "" {
		made.VPC = defaultVPC(wanted.Region)
	}
	if made.PodNet == "" {
		made.PodNet = "10.244.0.0/16"
	}
	if made.Services == "" {
		made.Services = "10.245.0.0/16"
	}
	for _, each := range wanted.NodePools {
		made.Pools = append(made.Pools, e.newPool(each, now, time.Time{}))
	}
	return made
}

// defaultVPC returns the UUID of the VPC network that a region's clusters share by default.
func defaultVPC(region string) string {
	return uuid.NewSHA1(uuid.NameSpaceDNS, []byte(region+".vpc.invalid")).String()
}

// withDefaults fills in the maintenance policy, whose duration callers can't choose.
func (s settings) withDefaults() settings {
	if s.MaintenancePolicy == nil {
		s.MaintenancePolicy = &MaintenancePolicy{}
	}
	policy := s.MaintenancePolicy
	policy.Duration = "4h0m0s"
	if policy.StartTime == "" {
		policy.StartTime = "00:00"
	}
	if policy.Day == "" {
		policy.Day = "any"
	}
	return s
}

func (e *Emulator) getCluster(x *exchange) reply {
	found := e.account.find(x.ids["cluster"])
	if found == nil || x.lags(FaultLaggingGet, found) {
		return notFound()
	}
	return shown(http.StatusOK, found)
}

func (e *Emulator) updateCluster(x *exchange) reply {
	found, refused := e.changeable(x)
	if found == nil {
		return refused
	}
	// A setting that the body does not mention keeps its current value.
	wanted := updateRequest{settings: found.Settings.copy()}
	if refused, ok := x.decode(&wanted); !ok {
		return refused
	}
	if message := e.checkUpdate(found, wanted); message != "" {
		return invalid(message)
	}
	found.Name = wanted.Name
	found.Settings = wanted.withDefaults()
	if wanted.Tags != nil {
		found.Tags = unique(*wanted.Tags)
	}
	if wanted.HA != nil {
		found.HA = *wanted.HA
	}
	found.Updated = x.now
	changed := shown(http.StatusAccepted, found)
	changed.effective = true
	return changed
}

// changeable finds the cluster that a request wants to change. A cluster that is being deleted can't be changed.
func (e *Emulator) changeable(x *exchange) (*cluster, reply) {
	found := e.account.find(x.ids["cluster"])
	if found == nil {
		return nil, notFound()
	}
	if found.isBeingDeleted() {
		return nil, invalid("cluster is being deleted")
	}
	return found, reply{}
}

// deleteCluster starts a deletion. If one has already started, the request succeeds and changes nothing.
func (e *Emulator) deleteCluster(x *exchange) reply {
	found := e.account.find(x.ids["cluster"])
	if found == nil {
		return notFound()
	}
	deleted := reply{status: http.StatusNoContent, cluster: found, effective: !found.isBeingDeleted()}
	if deleted.effective {
		e.beginDeletion(found, x)
	}
	return deleted
}

func (e *Emulator) beginDeletion(c *cluster, x *exchange) {
	state := e.options.DeleteState
	stuck := x.fault != nil && x.fault.Kind == FaultStuckDelete
	if state == DeleteAtOnce && !stuck {
		e.remove(c)
		return
	}
	if state == DeleteAtOnce {
		state = StateDeleted // a stuck deletion needs a state that clients can see
	}
	c.enter(state, "", x.now)
	if !stuck {
		c.schedule(x.now.Add(e.options.DeleteTime), "")
	}
}

// shown returns a reply that contains a cluster.
func shown(status int, c *cluster) reply {
	return reply{
		status: status, cluster: c, effective: status == http.StatusCreated,
		body: map[string]Cluster{"kubernetes_cluster": c.view()},
	}
}

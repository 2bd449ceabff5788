package doks

import (
	"time"
)

// account is everything that the state file keeps.
type account struct {
	// Format is the version of the file's format.
	Format   int        `json:"format"`
	Clusters []*cluster `json:"clusters"`
	// Doomed are the IDs of clusters that are gone, but whose planes may still exist.
	Doomed []string `json:"doomed,omitempty"`
	// Leftovers are the resources that deleted clusters left behind.
	Leftovers Resources `json:"leftovers"`
	// Droplets counts all machines ever made, to give each its own droplet ID.
	Droplets int `json:"droplets"`
}

// cluster is what the emulator knows about a cluster.
type cluster struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Region   string   `json:"region"`
	Version  string   `json:"version"`
	Tags     []string `json:"tags,omitempty"`
	HA       bool     `json:"ha"`
	VPC      string   `json:"vpc_uuid"`
	Worker   string   `json:"worker_subnet_uuid,omitempty"`
	PodNet   string   `json:"cluster_subnet"`
	Services string   `json:"service_subnet"`
	Isolated bool     `json:"isolated_workers"`
	Settings settings `json:"settings"`
	Pools    []*pool  `json:"pools"`

	State   State  `json:"state"`
	Message string `json:"message,omitempty"`
	// Due is when the state changes to Next, unless the cluster must wait longer for its plane. If Next is "", the
	// cluster is removed at that time. If Due is zero, the state does not change as time passes.
	Due  time.Time `json:"due,omitzero"`
	Next State     `json:"next,omitempty"`
	// Target is the version to which the cluster is being upgraded.
	Target string `json:"target,omitempty"`
	// Endpoint is the API server's address, once there is one.
	Endpoint string `json:"endpoint,omitempty"`

	Messages  []StatusMessage `json:"messages,omitempty"`
	Resources Resources       `json:"resources"`
	Created   time.Time       `json:"created"`
	Updated   time.Time       `json:"updated"`
}

// pool is a group of nodes of the same kind.
type pool struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Size      string            `json:"size"`
	Count     int               `json:"count"`
	Tags      []string          `json:"tags,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Taints    []Taint           `json:"taints,omitempty"`
	AutoScale bool              `json:"auto_scale"`
	Min       int               `json:"min_nodes"`
	Max       int               `json:"max_nodes"`
	Nodes     []*node           `json:"nodes"`
}

// The states of a node.
const (
	nodeProvisioning = "provisioning"
	nodeRunning      = "running"
	nodeDraining     = "draining"
	nodeDeleting     = "deleting"
)

// node is a machine.
type node struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Droplet string `json:"droplet"`
	State   string `json:"state"`
	// Due is when the state changes, unless the node must wait longer for its plane. Due is zero while the node waits
	// for its cluster's control plane to run, and once the node itself is running.
	Due time.Time `json:"due,omitzero"`
	// InPlane means that the plane has the node; it is used only with planes.
	InPlane bool      `json:"in_plane,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// settings are parts of a cluster that the emulator only checks, stores and shows. It stores what the caller wrote,
// except that it completes the maintenance policy and sets the policy's duration.
type settings struct {
	MaintenancePolicy *MaintenancePolicy `json:"maintenance_policy"`
	AutoUpgrade       bool               `json:"auto_upgrade"`
	SurgeUpgrade      bool               `json:"surge_upgrade"`

	ControlPlaneFirewall *firewall   `json:"control_plane_firewall,omitempty"`
	Autoscaler           *autoscaler `json:"cluster_autoscaler_configuration,omitempty"`
	SSO                  *singleSign `json:"sso,omitempty"`

	RoutingAgent       *feature `json:"routing_agent,omitempty"`
	AMDDevicePlugin    *feature `json:"amd_gpu_device_plugin,omitempty"`
	AMDMetricsExporter *feature `json:"amd_gpu_device_metrics_exporter_plugin,omitempty"`
	NvidiaDevicePlugin *feature `json:"nvidia_gpu_device_plugin,omitempty"`
	RDMASharedDevice   *feature `json:"rdma_shared_dev_plugin,omitempty"`
	CoreDNSAutoscaler  *feature `json:"coredns_autoscaler,omitempty"`
	PeerToPeerRegistry *feature `json:"p2p_oci_registry_plugin,omitempty"`
}

// MaintenancePolicy says when DigitalOcean may maintain a cluster.
type MaintenancePolicy struct {
	StartTime string `json:"start_time"`
	Duration  string `json:"duration"`
	Day       string `json:"day"`
}

type feature struct {
	Enabled bool `json:"enabled"`
}

type firewall struct {
	Enabled          bool     `json:"enabled"`
	AllowedAddresses []string `json:"allowed_addresses,omitempty"`
}

type autoscaler struct {
	Threshold    *float64 `json:"scale_down_utilization_threshold,omitempty"`
	UnneededTime *string  `json:"scale_down_unneeded_time,omitempty"`
	Expanders    []string `json:"expanders,omitempty"`
}

type singleSign struct {
	Enabled   bool   `json:"enabled"`
	Required  bool   `json:"required"`
	IssuerURL string `json:"issuer_url,omitempty"`
	ClientID  string `json:"client_id,omitempty"`
}

// isBeingDeleted reports whether the cluster's deletion has been requested.
func (c *cluster) isBeingDeleted() bool { return c.State == StateDeleted || c.State == StateDeleting }

// enter puts the cluster into a state, in which it stays unless schedule is called.
func (c *cluster) enter(state State, message string, now time.Time) {
	c.State, c.Message = state, message
	c.Due, c.Next, c.Target = time.Time{}, "", ""
	c.Updated = now
	if message != "" {
		c.Messages = append(c.Messages, StatusMessage{Message: message, Timestamp: now})
	}
}

// schedule sets Due and Next, which say when and how the state changes.
func (c *cluster) schedule(due time.Time, next State) { c.Due, c.Next = due, next }

// live returns how many nodes count towards the pool's desired size.
func (p *pool) live() int {
	count := 0
	for _, each := range p.Nodes {
		if each.State == nodeProvisioning || each.State == nodeRunning {
			count++
		}
	}
	return count
}

func (a *account) find(id string) *cluster {
	for _, each := range a.Clusters {
		if each.ID == id {
			return each
		}
	}
	return nil
}

func (a *account) named(name string) *cluster {
	for _, each := range a.Clusters {
		if each.Name == name {
			return each
		}
	}
	return nil
}

func (c *cluster) pool(id string) *pool {
	for _, each := range c.Pools {
		if each.ID == id {
			return each
		}
	}
	return nil
}

// dropletsReserved counts the machines that all clusters have or may still get. A pool with autoscaling counts at its
// maximum size, or as its number of nodes if that is larger.
func (a *account) dropletsReserved() int {
	count := 0
	for _, each := range a.Clusters {
		for _, p := range each.Pools {
			count += p.reserved()
		}
	}
	return count
}

func (p *pool) reserved() int {
	if p.AutoScale {
		return max(p.Max, len(p.Nodes))
	}
	return max(p.Count, len(p.Nodes))
}

package doks

import (
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"time"
)

// Cluster is a cluster as the API shows it.
type Cluster struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	Region        string     `json:"region"`
	Version       string     `json:"version"`
	ClusterSubnet string     `json:"cluster_subnet"`
	ServiceSubnet string     `json:"service_subnet"`
	VPC           string     `json:"vpc_uuid"`
	WorkerSubnet  string     `json:"worker_subnet_uuid,omitempty"`
	IPv4          string     `json:"ipv4"`
	Endpoint      string     `json:"endpoint"`
	Tags          []string   `json:"tags"`
	NodePools     []NodePool `json:"node_pools"`
	settings
	IsolatedWorkers bool      `json:"isolated_workers"`
	HA              bool      `json:"ha"`
	RegistryEnabled bool      `json:"registry_enabled"`
	Status          Status    `json:"status"`
	CreatedAt       time.Time `json:"created_at"`
	UpdatedAt       time.Time `json:"updated_at"`
}

// Status is the state of a cluster, with a human-readable message.
type Status struct {
	State   State  `json:"state"`
	Message string `json:"message,omitempty"`
}

// NodePool is a node pool as the API shows it.
type NodePool struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Size      string            `json:"size"`
	Count     int               `json:"count"`
	Tags      []string          `json:"tags"`
	Labels    map[string]string `json:"labels"`
	Taints    []Taint           `json:"taints"`
	AutoScale bool              `json:"auto_scale"`
	MinNodes  int               `json:"min_nodes"`
	MaxNodes  int               `json:"max_nodes"`
	Nodes     []Node            `json:"nodes"`
}

// Taint keeps pods off the nodes of a pool. godo capitalizes the field names. Decoding accepts that, because it ignores
// case.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// Node is a node as the API shows it. It has no name or droplet while it is being provisioned.
type Node struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Status    NodeStatus `json:"status"`
	DropletID string     `json:"droplet_id"`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
}

// NodeStatus is the state of a node: provisioning, running, draining or deleting.
type NodeStatus struct {
	State string `json:"state"`
}

// StatusMessage reports something that happened to a cluster.
type StatusMessage struct {
	Message   string    `json:"message"`
	Timestamp time.Time `json:"timestamp"`
}

// documentationIP is the IPv4 address of a cluster that is not highly available, if the URL of its API server contains
// a name, as it does without Planes. RFC 5737 reserves the address for documentation, so it never reaches anything.
const documentationIP = "203.0.113.10"

// view returns the cluster as the API shows it now.
func (c *cluster) view() Cluster {
	return Cluster{
		ID: c.ID, Name: c.Name, Region: c.Region, Version: c.Version,
		ClusterSubnet: c.PodNet, ServiceSubnet: c.Services, VPC: c.VPC, WorkerSubnet: c.Worker,
		IPv4: c.ipv4(), Endpoint: c.Endpoint,
		Tags:      c.allTags(),
		NodePools: c.poolViews(),
		settings:  c.Settings.copy(), IsolatedWorkers: c.Isolated, HA: c.HA,
		Status:    Status{State: c.State, Message: c.statusMessage()},
		CreatedAt: stamp(c.Created), UpdatedAt: stamp(c.Updated),
	}
}

// ipv4 returns "" before the cluster has an address, and always for a highly available control plane, which has several.
func (c *cluster) ipv4() string {
	if c.HA || c.Endpoint == "" {
		return ""
	}
	server, err := url.Parse(c.Endpoint)
	if err != nil {
		return documentationIP
	}
	if _, err := netip.ParseAddr(server.Hostname()); err != nil {
		return documentationIP // the server has a name instead of an address
	}
	return server.Hostname()
}

// statusMessage returns the cluster's message, or "provisioning" while a cluster without a message is being provisioned.
func (c *cluster) statusMessage() string {
	if c.Message == "" && c.State == StateProvisioning {
		return string(c.State)
	}
	return c.Message
}

// allTags returns the caller's tags and those that every cluster has.
func (c *cluster) allTags() []string {
	return unique(c.Tags, []string{"k8s", "k8s:" + c.ID})
}

func (c *cluster) poolViews() []NodePool {
	views := []NodePool{}
	for _, each := range c.Pools {
		views = append(views, c.poolView(each))
	}
	return views
}

// poolView shows a pool, which has its cluster's tags in addition to its own.
func (c *cluster) poolView(p *pool) NodePool {
	nodes := []Node{}
	for _, each := range p.Nodes {
		nodes = append(nodes, each.view())
	}
	return NodePool{
		ID: p.ID, Name: p.Name, Size: p.Size, Count: p.Count,
		Tags:   unique(c.Tags, p.Tags, []string{"k8s", "k8s:" + c.ID, "k8s:worker"}),
		Labels: maps.Clone(p.Labels), Taints: append([]Taint{}, p.Taints...),
		AutoScale: p.AutoScale, MinNodes: p.Min, MaxNodes: p.Max,
		Nodes: nodes,
	}
}

func (n *node) view() Node {
	shown := Node{ID: n.ID, Status: NodeStatus{State: n.State}, CreatedAt: stamp(n.Created), UpdatedAt: stamp(n.Updated)}
	if n.State != nodeProvisioning {
		shown.Name, shown.DropletID = n.Name, n.Droplet
	}
	return shown
}

// unique joins lists, and keeps only the first of equal entries. It never returns nil.
func unique(lists ...[]string) []string {
	joined := []string{}
	for _, each := range slices.Concat(lists...) {
		if !slices.Contains(joined, each) {
			joined = append(joined, each)
		}
	}
	return joined
}

// stamp returns a time as the API writes it, truncated to seconds.
func stamp(at time.Time) time.Time { return at.UTC().Truncate(time.Second) }

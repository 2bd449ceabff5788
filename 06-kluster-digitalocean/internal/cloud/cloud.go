// Package cloud is the operator's view of clouds: clusters, and a few requests. Each cloud implements [CloudProvider], and
// passes the tests of package cloudtest.
package cloud

import (
	"context"
	"time"
)

// CloudProvider manages the clusters of one account. Every call is idempotent. If the cloud answers with an error, that is
// of type *[Error]. Other errors come from the network, and don't tell whether the call took effect.
type CloudProvider interface { //nolint:revive // what such an interface is called everywhere
	// Identity returns the account's unique ID, which is the same for all its tokens. It is Unauthorized if the token
	// may not read it. NotFound, from any call, proves something about this account only.
	Identity(ctx context.Context) (string, error)
	// Find returns the cluster with the owner's tag, nil if the account's list of clusters has none. Call it when no ID
	// is known: a cluster may exist even if the answer to its creation was an error. Find also returns a cluster that is
	// being deleted, until it is gone. The list may show a new cluster only some time after its creation.
	Find(ctx context.Context, owner Owner) (*Cluster, error)
	// Get returns a cluster by its ID, with its present owners. It returns NotFound if the cloud shows none: a cluster
	// that it has shown before is gone for ever, but it may show a new one only some time after its creation.
	Get(ctx context.Context, id string) (*Cluster, error)
	// Create creates a cluster with the owner's tag, in one request. It returns NameTaken if the account already has a
	// cluster of that name, of any owner, even one that the list doesn't show yet. Of two concurrent creations with one
	// name, only one takes effect.
	Create(ctx context.Context, owner Owner, spec Spec) (*Cluster, error)
	// UpdatePools makes the node pools of a running cluster match those given, and returns whether it had to change any.
	// It returns Refused if a pool has machines of another size.
	UpdatePools(ctx context.Context, cluster *Cluster, pools []Pool) (changed bool, err error)
	// Upgrade starts the upgrade of a running cluster to the version, and returns whether it had to.
	Upgrade(ctx context.Context, cluster *Cluster, version string) (changed bool, err error)
	// Delete starts the deletion of a cluster. It returns NotFound if there is none.
	Delete(ctx context.Context, id string) error
	// Kubeconfig returns new credentials for a running cluster.
	Kubeconfig(ctx context.Context, cluster *Cluster) (Kubeconfig, error)
}

// Owner is the Kluster that a cluster is made for.
type Owner struct {
	// UID is the UID of the Kluster. No other object ever has the same.
	UID string
}

// OwnerTagPrefix and the owner's UID make the tag of a cluster's owner.
const OwnerTagPrefix = "kluster-uid:"

// Tag returns the tag that a cluster of the owner has.
func (o Owner) Tag() string { return OwnerTagPrefix + o.UID }

// Spec describes a new cluster.
type Spec struct {
	Name, Region string
	// Version is a slug, a minor version, or "latest".
	Version string
	Pools   []Pool
}

// Cluster is a cluster as the cloud reports it.
type Cluster struct {
	ID, Name, Region string
	// Owners are the owners in the cluster's tags: one, unless someone has changed its tags.
	Owners []Owner
	// Version is the slug of the version that runs, or will run. It is set in every state.
	Version string
	State   State
	// Message is the cloud's explanation of the state, for people.
	Message string
	// Endpoint is the URL of the API server, empty until there is one.
	Endpoint string
	Pools    []Pool
}

// IsOwnedBy reports whether the cluster has this owner's tag, and no other owner's.
func (c *Cluster) IsOwnedBy(owner Owner) bool { return len(c.Owners) == 1 && c.Owners[0] == owner }

// State is a cluster's state as the cloud reports it.
type State string

// The states. A cloud may have others; the operator waits until they pass.
const (
	StateProvisioning State = "provisioning"
	StateRunning      State = "running"
	StateUpgrading    State = "upgrading"
	// StateDegraded is the state of a cluster that runs with problems.
	StateDegraded State = "degraded"
	// StateFailed is the state of a cluster that the cloud could not create.
	StateFailed State = "error"
	// StateDeleting and StateDeleted are the states of a cluster that is being deleted, and still listed.
	StateDeleting State = "deleting"
	StateDeleted  State = "deleted"
)

// Pool is a group of machines.
type Pool struct {
	// ID is empty in a spec.
	ID   string
	Name string
	// Size is the slug of the machines' size.
	Size string
	// Count is how many machines the pool should have. With autoscale it is the initial number of a new pool.
	Count int
	// Running is how many of them run.
	Running   int
	Labels    map[string]string
	Taints    []Taint
	Autoscale *Autoscale
}

// Taint is a taint that the nodes of a pool get.
type Taint struct{ Key, Value, Effect string }

// Autoscale are the bounds within which the cloud chooses the count.
type Autoscale struct{ Min, Max int }

// Kubeconfig is the content of a kubeconfig file, and when its credentials expire.
type Kubeconfig struct {
	Content []byte
	Expires time.Time
}

// Problem is why a cloud rejects a request.
type Problem string

// The problems.
const (
	// NotFound: no such cluster or node pool exists.
	NotFound Problem = "not found"
	// NameTaken: the account has a cluster of that name.
	NameTaken Problem = "name taken"
	// Unauthorized: the token is wrong, or may not do this.
	Unauthorized Problem = "unauthorized"
	// Refused: the request is invalid or not allowed; the same request will fail again.
	Refused Problem = "refused"
	// Busy: too many requests.
	Busy Problem = "busy"
	// Unavailable: the cloud has failed, or its answer makes no sense.
	Unavailable Problem = "unavailable"
)

// Error is an error that a cloud answers. It contains no token.
type Error struct {
	Problem Problem
	// Message is the cloud's message.
	Message string
	// RetryAfter is how long the cloud asks to wait, zero if it does not.
	RetryAfter time.Duration
}

// Error implements error.
func (e *Error) Error() string { return string(e.Problem) + ": " + e.Message }

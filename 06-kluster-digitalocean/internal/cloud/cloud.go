// Package cloud defines what the operator needs from any cloud. Each cloud has an implementation of [CloudProvider],
// which must pass the tests in package cloudtest.
package cloud

import (
	"context"
	"time"
)

// CloudProvider manages the clusters of one account. Every call except Kubeconfig is idempotent. An error from the
// cloud is, or wraps, an *[Error]. Any other error means that no valid response arrived. After such an error, or after
// Unavailable, the call may or may not have taken effect.
type CloudProvider interface { //nolint:revive // the usual name of such an interface
	// Identity returns the account's unique ID, which is the same for all its tokens. It returns Unauthorized if the
	// token isn't allowed to read the ID. The operator needs the ID because NotFound, from any call, proves something
	// only about this account.
	Identity(ctx context.Context) (string, error)
	// Find returns the cluster with the owner's tag, or nil if the account's list of clusters has none. Call it unless
	// Get has found a cluster of this owner: one may exist even if Create returned an error. Find also returns a cluster
	// that is being deleted, until it is gone. A new cluster may appear in the list only after a while.
	Find(ctx context.Context, owner Owner) (*Cluster, error)
	// Get returns the cluster with the ID, with its current owners. It returns NotFound if the cloud shows no such
	// cluster. A cluster that the cloud has shown before is then gone for good; a new one may appear only after a
	// while.
	Get(ctx context.Context, id string) (*Cluster, error)
	// Create creates a cluster with the owner's tag and the spec's origin, in a single request. It returns NameTaken if
	// the account already has a cluster with that name, no matter who owns it, even if the list doesn't show it yet. Of
	// two concurrent calls with the same name, only one takes effect.
	Create(ctx context.Context, owner Owner, spec Spec) (*Cluster, error)
	// UpdatePools makes the node pools of a running cluster match the given ones, and returns whether it had to change
	// any. It returns Refused if a given pool has a machine size other than that of the existing pool with its name.
	UpdatePools(ctx context.Context, cluster *Cluster, pools []Pool) (changed bool, err error)
	// Upgrade upgrades a running cluster to the version if necessary, and returns whether it started an upgrade. It
	// returns Refused for a version earlier than the cluster's.
	Upgrade(ctx context.Context, cluster *Cluster, version string) (changed bool, err error)
	// Delete starts the deletion of a cluster. It returns NotFound if there is no such cluster.
	Delete(ctx context.Context, id string) error
	// Kubeconfig returns new credentials for a running cluster.
	Kubeconfig(ctx context.Context, cluster *Cluster) (Kubeconfig, error)
}

// Owner is the Kluster that a cluster belongs to.
type Owner struct {
	// UID is the UID of the Kluster. No other object ever has the same UID.
	UID string
}

// OwnerTagPrefix is the beginning of the tag that marks a cluster's owner. The owner's UID follows it.
const OwnerTagPrefix = "kluster-uid:"

// Tag returns the tag that marks the owner's cluster.
func (o Owner) Tag() string { return OwnerTagPrefix + o.UID }

// Spec describes a new cluster.
type Spec struct {
	Name, Region string
	// Origin is the Kluster's namespace and name, separated by a slash. The cloud shows it to people. It doesn't
	// prove which Kluster owns the cluster: only the owner's tag does.
	Origin string
	// Version is a slug, a minor version, or "latest".
	Version string
	Pools   []Pool
}

// Cluster is a cluster as the cloud reports it.
type Cluster struct {
	ID, Name, Region string
	// Owners are the owners that the cluster's tags name: exactly one if Create made the cluster, unless someone has
	// changed the tags.
	Owners []Owner
	// Origin is the origin in the spec with which the cluster was created, perhaps shortened, or "" if someone has
	// removed it.
	Origin string
	// Version is the slug of the version that the cluster runs, or will run once it is created. It is set in every
	// state.
	Version string
	State   State
	// Message is the cloud's explanation of the state, for people.
	Message string
	// Endpoint is the URL of the API server. It is empty until the cluster has one.
	Endpoint string
	Pools    []Pool
}

// IsOwnedBy reports whether the cluster has this owner's tag and no other owner's.
func (c *Cluster) IsOwnedBy(owner Owner) bool { return len(c.Owners) == 1 && c.Owners[0] == owner }

// State is a cluster's state as the cloud reports it.
type State string

// The states that the operator handles. If a cloud reports any other state, the operator waits for it to end.
const (
	StateProvisioning State = "provisioning"
	StateRunning      State = "running"
	StateUpgrading    State = "upgrading"
	// StateDegraded is the state of a cluster that is running but has problems.
	StateDegraded State = "degraded"
	// StateFailed is the state of a cluster that the cloud could not create.
	StateFailed State = "error"
	// StateDeleting and StateDeleted are the states of a cluster that is being deleted but is still listed.
	StateDeleting State = "deleting"
	StateDeleted  State = "deleted"
)

// Pool is a group of machines.
type Pool struct {
	// ID is the pool's ID in the cloud. It is empty in a spec.
	ID   string
	Name string
	// Size is the slug of the machines' size.
	Size string
	// Count is the number of machines that the pool should have. With autoscale, the cloud chooses it: in a spec, it is
	// then only the initial number for a new pool.
	Count int
	// Running is the number of machines that are running.
	Running   int
	Labels    map[string]string
	Taints    []Taint
	Autoscale *Autoscale
}

// Taint is a taint on the nodes of a pool.
type Taint struct{ Key, Value, Effect string }

// Autoscale holds the bounds within which the cloud chooses the count.
type Autoscale struct{ Min, Max int }

// Kubeconfig is the content of a kubeconfig file, and the time when its credentials expire.
type Kubeconfig struct {
	Content []byte
	Expires time.Time
}

// Problem is the reason why a request to a cloud fails.
type Problem string

// The problems that the operator distinguishes.
const (
	// NotFound: the cloud shows no such cluster or node pool.
	NotFound Problem = "not found"
	// NameTaken: the account already has a cluster with the name of the one to create.
	NameTaken Problem = "name taken"
	// Unauthorized: the token is wrong, or lacks the permission for this request.
	Unauthorized Problem = "unauthorized"
	// Refused: the request is invalid or not allowed; the same request will fail again, unless something else has
	// changed.
	Refused Problem = "refused"
	// Busy: the client has sent too many requests.
	Busy Problem = "busy"
	// Unavailable: the cloud has failed, or its response makes no sense.
	Unavailable Problem = "unavailable"
)

// Error is an error that a cloud returns, or the CloudProvider's own, for example for a response that makes no sense.
// It contains no token.
type Error struct {
	Problem Problem
	// Message is the cloud's message, or the CloudProvider's own.
	Message string
}

// Error implements error.
func (e *Error) Error() string { return string(e.Problem) + ": " + e.Message }

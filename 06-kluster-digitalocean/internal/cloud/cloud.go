// Package cloud is what the operator knows of clouds: clusters as it sees them,
// and the few things that it asks for. A cloud is an implementation of
// [CloudProvider]; it passes the tests of package cloudtest.
package cloud

import (
	"context"
	"time"
)

// CloudProvider manages the clusters of one account. Every call may be repeated:
// what is done already stays as it is. Errors are of type *[Error]; other ones
// come from the network, and say nothing about whether the call took effect.
type CloudProvider interface { //nolint:revive // what such an interface is called everywhere
	// Identity returns what tells the account from every other. All tokens of an account have the same; one
	// that may not ask for it is Unauthorized. NotFound proves something only about the account that it comes from.
	Identity(ctx context.Context) (string, error)
	// Find returns the cluster with the owner's tag, nil if the list of the account's clusters shows none. It is what to
	// call when no ID is known: a cluster whose creation was answered by an error may exist. One that is being deleted is
	// returned until it is gone. The list may show a new cluster some time after its creation.
	Find(ctx context.Context, owner Owner) (*Cluster, error)
	// Get returns a cluster by its ID. It returns NotFound if there is none: a new one may be shown some time after its
	// creation, and one that was shown before is gone for ever. The owners, too, are those of this moment.
	Get(ctx context.Context, id string) (*Cluster, error)
	// Create asks for a cluster and marks it as the owner's in the same step. It returns
	// NameTaken if the account has a cluster of that name already, of any owner, shown or not; of two creations at
	// the same moment, too, one takes effect.
	Create(ctx context.Context, owner Owner, spec Spec) (*Cluster, error)
	// UpdatePools makes the node pools of a running cluster those given, and returns whether it had to change any.
	// It is Refused if a pool has machines of another size.
	UpdatePools(ctx context.Context, cluster *Cluster, pools []Pool) (changed bool, err error)
	// Upgrade begins to bring a running cluster to the version, and returns whether it had to.
	Upgrade(ctx context.Context, cluster *Cluster, version string) (changed bool, err error)
	// Delete begins to remove a cluster. It returns NotFound if there is none.
	Delete(ctx context.Context, id string) error
	// Kubeconfig returns new credentials for a running cluster.
	Kubeconfig(ctx context.Context, cluster *Cluster) (Kubeconfig, error)
}

// Owner is the Kluster that a cluster is made for.
type Owner struct {
	// UID is the UID of the Kluster. No other object ever has the same.
	UID string
}

// OwnerTagPrefix begins the tag that tells whose a cluster is; the UID ends it.
const OwnerTagPrefix = "kluster-uid:"

// Tag is the tag that a cluster of the owner has.
func (o Owner) Tag() string { return OwnerTagPrefix + o.UID }

// Spec is what a new cluster is to be like.
type Spec struct {
	Name, Region string
	// Version is a slug, a minor version, or "latest".
	Version string
	Pools   []Pool
}

// Cluster is one as the cloud has it.
type Cluster struct {
	ID, Name, Region string
	// Owners are those whose tags the cluster has: one, unless someone has changed its tags.
	Owners []Owner
	// Version is the slug of the version that runs, or will run; it is known in every state.
	Version string
	State   State
	// Message is what the cloud says about the state, for people.
	Message string
	// Endpoint is the URL of the API server, empty until there is one.
	Endpoint string
	Pools    []Pool
}

// IsOwnedBy tells whether the cluster is the owner's, and no one else's.
func (c *Cluster) IsOwnedBy(owner Owner) bool { return len(c.Owners) == 1 && c.Owners[0] == owner }

// State is what a cloud says of a cluster.
type State string

// The states. A cloud may have others; the operator waits until they pass.
const (
	StateProvisioning State = "provisioning"
	StateRunning      State = "running"
	StateUpgrading    State = "upgrading"
	// StateDegraded is that of a cluster that runs, though not well.
	StateDegraded State = "degraded"
	// StateFailed is that of a cluster that could not be made.
	StateFailed State = "error"
	// StateDeleting and StateDeleted are those of a cluster that is still listed, and on its way out.
	StateDeleting State = "deleting"
	StateDeleted  State = "deleted"
)

// Pool is a group of machines.
type Pool struct {
	// ID is empty in a pool that is asked for.
	ID   string
	Name string
	// Size is the slug of the machines' size.
	Size string
	// Count is how many machines the pool is to have. With autoscale it is where a new pool begins.
	Count int
	// Running is how many of them run.
	Running   int
	Labels    map[string]string
	Taints    []Taint
	Autoscale *Autoscale
}

// Taint is one that the nodes of a pool get.
type Taint struct{ Key, Value, Effect string }

// Autoscale are the bounds within which the cloud chooses the count.
type Autoscale struct{ Min, Max int }

// Kubeconfig is the content of a kubeconfig file, and when its credentials end.
type Kubeconfig struct {
	Content []byte
	Expires time.Time
}

// Problem is why a cloud does not do what it is asked for.
type Problem string

// The problems.
const (
	// NotFound: there is no such thing.
	NotFound Problem = "not found"
	// NameTaken: the account has a cluster of that name.
	NameTaken Problem = "name taken"
	// Unauthorized: the token is wrong, or may not do this.
	Unauthorized Problem = "unauthorized"
	// Refused: the request is understood, and will never be met as it is.
	Refused Problem = "refused"
	// Busy: too many requests.
	Busy Problem = "busy"
	// Unavailable: the cloud itself has failed.
	Unavailable Problem = "unavailable"
)

// Error is an answer of a cloud that is no success. It holds no token.
type Error struct {
	Problem Problem
	// Message is what the cloud says.
	Message string
	// RetryAfter is how long it asks to wait, zero if it does not say.
	RetryAfter time.Duration
}

// Error implements error.
func (e *Error) Error() string { return string(e.Problem) + ": " + e.Message }

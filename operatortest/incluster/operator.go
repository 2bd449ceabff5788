package incluster

import (
	"context"
	"time"
)

// Operator describes a deployed operator. The specs run in the operator's project folder.
type Operator struct {
	// Namespace is where the operator runs, Deployment is the name of its Deployment, and Lease is the name of its
	// Lease.
	Namespace, Deployment, Lease string
	// Manifests is a kustomization with the objects that are deployed, such as config/default. It may omit objects
	// in the operator's namespace.
	Manifests string
	// Variables are set for each target that [Operator.Make] runs, such as deploy, as NAME=value.
	Variables []string
	// Deployed is called once the operator is running, before the specs. It may be nil.
	Deployed func(ctx context.Context)
	// Metrics says where the operator serves its metrics over TLS. It is nil if the operator serves none over TLS.
	Metrics *Metrics

	// Resources is the name of the custom resources for kubectl, such as foos.
	Resources string
	// Trial is the namespace of the specs' resources. The specs create it and delete it.
	Trial string
	// Prepare contains the arguments of the kubectl command that creates whatever else the resources need. It is nil if
	// they need nothing else.
	Prepare []string
	// Samples contains the arguments of kubectl that name the sample resources, such as --kustomize=config/samples.
	Samples []string
	// Converged lists the conditions of a resource in its desired state, as arguments of `kubectl wait --for=condition=`.
	Converged []string
	// Children are objects that the operator creates for the samples. After a failover, the first one also shows whether
	// the operator works again.
	Children []Child
	// ManagedBy is the value of the label app.kubernetes.io/managed-by on the operator's children and on
	// their pods, if they have any. ChildKinds are the kinds of the children and pods, as an argument of `kubectl get`.
	ManagedBy, ChildKinds string
	// Collision describes a resource whose child's name is taken. If it is nil, the specs about this resource are left
	// out.
	Collision *Collision
}

// Metrics describes metrics that are served over TLS on port 8443 of a Service, to clients that have a role.
type Metrics struct {
	Service, Role string
	// Contains is a string that the metrics always contain.
	Contains string
}

// Child is an object that the operator creates for a sample.
type Child struct {
	// Name is the type and name for kubectl, such as deployment/web.
	Name string
	// Drift contains changes that the operator must undo; each key says what its change does.
	Drift map[string]Drift
}

// Drift is a change that someone else makes to a child.
type Drift struct {
	// Patch is a JSON merge patch, and Field is the JSONPath, in braces, of a field that it changes.
	Patch, Field string
	// Renewed means that the operator gives the field a new value instead of restoring the old one.
	Renewed bool
}

// Collision is a name conflict: another object already has the name that the operator needs for a child.
type Collision struct {
	// Foreign contains the arguments of `kubectl create` for the object that takes the name, such as deployment taken
	// --image=….
	Foreign []string
	// Child is the type and name that the operator's child needs, such as deployment/taken. At first, the foreign
	// object has them.
	Child string
	// Resource is the YAML of a resource that needs the name, and Name is its type and name, such as foo/taken.
	Resource, Name string
	// Condition is the type of the condition that must be False during the conflict. The message of at least one
	// condition must contain the child's name in double quotes.
	Condition string
}

const (
	// Timeout bounds each spec of this package that waits for pods, except that the one that drains a node has twice as
	// long. Most of the time is for pulling images, and for starting and stopping pods.
	Timeout = 5 * time.Minute
	// commandTimeout bounds specs and commands that don't wait for a pod to start.
	commandTimeout = time.Minute
	pollInterval   = 500 * time.Millisecond
	// leaderInterval is how often the Lease is read while a failover is being timed.
	leaderInterval = 100 * time.Millisecond
)

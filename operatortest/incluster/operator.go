package incluster

import (
	"context"
	"time"
)

// Operator describes a deployed operator. The specs run in the folder of its project.
type Operator struct {
	// Namespace is where the operator runs, Deployment what runs it, and Lease what its replicas agree through.
	Namespace, Deployment, Lease string
	// Manifests is the kustomization that names all that a deployment consists of, such as config/default.
	Manifests string
	// Variables are set for `make deploy` and `make undeploy`, as NAME=value.
	Variables []string
	// Deployed is done once the operator runs, before anything is asked of it. Nil if that is nothing.
	Deployed func(ctx context.Context)
	// Metrics is where the operator serves its metrics over TLS; nil if it does not.
	Metrics *Metrics

	// Resources is the name of the custom resources for kubectl, such as foos.
	Resources string
	// Trial is the namespace in which the specs have their resources. They make it and remove it.
	Trial string
	// Prepare are the arguments of kubectl that make what the resources need besides; nil if that is nothing.
	Prepare []string
	// Samples are the arguments of kubectl that name the sample resources, such as --kustomize=config/samples.
	Samples []string
	// Converged are the conditions that a resource has once all is as it asks, as `kubectl wait --for=condition=` takes them.
	Converged []string
	// Children are objects that the operator makes for the samples. The first is also what shows whether it works.
	Children []Child
	// ManagedBy is the value of the label app.kubernetes.io/managed-by of all that the operator makes,
	// and ChildKinds are their kinds, as `kubectl get` takes them.
	ManagedBy, ChildKinds string
	// Collision is how a resource meets a name that is taken. Nil leaves this out.
	Collision *Collision
}

// Metrics are behind a Service, for those who have a role.
type Metrics struct {
	Service, Role string
	// Contains is what is always among the metrics.
	Contains string
}

// Child is an object that the operator makes for a sample.
type Child struct {
	// Name is type and name for kubectl, such as deployment/web.
	Name string
	// Drift are JSON merge patches that the operator must undo, by what they do.
	Drift map[string]Drift
}

// Drift is a change that someone else makes to a child.
type Drift struct {
	// Patch is the JSON merge patch, and Field the JSONPath in braces of what it changes.
	Patch, Field string
}

// Collision is a name that is taken before the operator needs it.
type Collision struct {
	// Foreign are the arguments of `kubectl create` that take it, such as deployment taken --image=….
	Foreign []string
	// Child is type and name of what was made, such as deployment/taken.
	Child string
	// Resource is the YAML of a resource that needs the name, and Name its type and name, such as foo/taken.
	Resource, Name string
	// Condition is the type of the condition that is False meanwhile, with a message that names the child.
	Condition string
}

const (
	// Timeout bounds each spec. Most of it is for pulling images, and for pods that start or end.
	Timeout = 5 * time.Minute
	// commandTimeout bounds what needs no pod to start.
	commandTimeout = time.Minute
	pollInterval   = 500 * time.Millisecond
	// leaderInterval is how often the Lease is looked at where the time of a change is measured.
	leaderInterval = 100 * time.Millisecond
)

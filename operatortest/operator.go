package operatortest

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Operator describes an operator to the kit. Paths are relative to the folder
// the tests run in, which is that of the test files. [DescribeSchema] needs the
// first group of fields only.
type Operator struct {
	// CRDs are files and folders with the operator's CustomResourceDefinitions.
	CRDs []string
	// Samples is the folder of objects that the API server must accept.
	Samples string
	// InvalidSamples is the folder of objects that it must refuse.
	InvalidSamples string

	// Run runs the operator against the API server of the configuration, until
	// the context ends and what was begun is finished. It must be possible to run
	// several at once in one process. Listen nowhere, or on free ports. An error may
	// end it before its first write, when the API server does not answer: it is started again then. The context's cause is
	// traffic.ErrKilled if the operator must end at once, as by kill -9.
	//
	// The context has a logger, which klog.FromContext and controller-runtime's log.FromContext return: the kit looks for
	// panics and for the values of Secrets in what it logs. Give it to a manager, as ctrl.Options.Logger. A panic that nothing
	// recovers still ends the test process; the environment variable GODEBUG=tracebacklabels=1 makes Go print the trial with it.
	Run func(ctx context.Context, config *rest.Config, options RunOptions) error
	// Confine tells that the operator watches all namespaces, and can't be told to look at one only. The kit then shows it no other
	// than [RunOptions.Namespace]: lists and watches of all namespaces are sent to that one.
	Confine bool
	// Webhooks are files and folders with the operator's webhook configurations, which the cluster must install, too.
	Webhooks []string
	// ServesWebhooks tells that Run serves webhooks, as [RunOptions.Webhooks] says. The kit then runs one more operator for
	// that, in a namespace of its own and as long as the others: webhooks answer also while an operator of a trial is dead. If it
	// is false, the suite serves the cluster's webhooks, if there are any. [DescribeSchema] runs no operator, so it needs such a suite.
	ServesWebhooks bool
	// Roles are files with the Roles and ClusterRoles of the operator. It runs with
	// their permissions and no others; a Role holds in the namespace of each trial,
	// where the Lease is too.
	Roles []string
	// Sample is the file of the custom resource that the behaviours are tried on,
	// one that can be met. Only its first object is used; Prepare makes what else it needs.
	Sample string
	// Prepare makes what the sample refers to, such as a ConfigMap, in a new namespace. Nil if it needs nothing. What the
	// operator makes for another custom resource of its own among these is not compared; its writes count.
	Prepare func(ctx context.Context, writer client.Client, namespace string) error
	// Condition is the type of the condition that is True while the resource is as
	// it should be; "Ready" if empty.
	Condition string
	// Converged returns an error that says what is missing as long as the status doesn't say that the present spec is met.
	// Nil for an operator with a Condition; it is for those that have none, or say it by a phase.
	Converged func(resource *unstructured.Unstructured) error
	// Children are the objects that the operator makes for a resource. It may make no others, but for events and leases.
	Children []Child
	// MaxWrites is how many write requests of the operator may take effect from a new
	// resource to a converged one. Events, leases and refused writes do not count.
	MaxWrites int
	// Drains tells that the operator works off its queue and writes its events before it ends. client-go's queue can.
	// controller-runtime's manager drops what is queued, and the next start makes up for it; it cuts off events on
	// their way, and they are lost. Source: Provider.Stop in its pkg/internal/recorder.
	Drains bool
	// Values gives sensible values of spec fields, by their path such as
	// "spec.image". Without them, values are made from the field's schema.
	Values map[string][]any
	// Ascending are the paths of spec fields that the API server lets nobody take back, such as a version: a
	// value may only be followed by a later one of the field's Values. Not inside lists and maps.
	Ascending []string
	// Immutable are the paths of the spec fields that the API server lets nobody change.
	Immutable []string
	// Fixed are spec fields that keep the sample's value in every behaviour, by their path, each with the reason: for
	// example a field that keeps what is outside Kubernetes when the resource goes, which looks like a leak.
	Fixed map[string]string
	// Unmeetable are specs that the API server accepts and the operator can't meet.
	Unmeetable []Unmeetable
	// Normalize removes from a copy of an object what differs between two
	// resources of the same spec, such as generated names and random content.
	// Metadata, other objects' status, the namespace's name, UIDs and times are normalised already.
	Normalize func(object *unstructured.Unstructured)
	// LeftOut are behaviours that are not tried, each with the reason, which the report shows. A part of a behaviour is
	// named after a slash:
	//
	//	converges/observedGeneration  conditions without observedGeneration; status.observedGeneration is read in any case
	//	converges/order               the status tells of something else than of children that are there, with pods that are ready
	//	drift/env                     the list of a container's variables is the operator's alone
	//	drift/template-annotations    so are the annotations of the pods that a child makes
	//	drift/secrets                 so is the list of Secrets of a ServiceAccount
	//	collision/event               a name conflict is reported by a condition, without an Event
	//	misoperation/report           what can't be had is told in the operator's log only, neither in the status nor by an Event
	//	misoperation/pods             the status is about the children themselves, whether their pods run or not
	//	update/spec.PATH              a field that has no effect until later
	//	secrets/KEY                   a key of Secrets whose value is no secret, such as "secrets/host"
	//	growth/memory                 a bounded cache that is larger than what the kit creates, or a suite that itself keeps what it sees
	//	least-privilege/VERB RESOURCE a permission that the kit has no use for, such as "least-privilege/create tokenreviews.authentication.k8s.io"
	LeftOut map[string]string
	// External is the world outside Kubernetes in which the operator makes something. Nil if there is none.
	External External
	// Seed is what the random specs of the behaviour transitions are drawn from; 1 if zero. Another seed tries others.
	Seed int64
	// Timeout bounds each wait for the operator; if zero, it is that of the environment variable OPERATORTEST_TIMEOUT, or a minute.
	Timeout time.Duration
}

// RunOptions is what the kit asks of an operator that it runs.
type RunOptions struct {
	// Namespace is the only one to look at and to write to; never empty. What is cluster-scoped must have a resource's name, or
	// its namespace, in its own name; of cluster-scoped resources the operator is shown only those that it may look after.
	Namespace string
	// Resync is how often the informers hand all objects to the handlers once more; zero for the operator's default.
	Resync time.Duration
	// LeaderElection is nil for an operator that works without it.
	LeaderElection *LeaderElection
	// Webhooks says where to serve webhooks. Nil unless [Operator.ServesWebhooks].
	Webhooks *WebhookServer
	// LogFile makes the kit read a file to which the operator logs, as it reads the logger of Run's context.
	// The file may be removed later. Nil outside the kit.
	LogFile func(path string) error
}

// WebhookServer is where an operator serves its webhooks.
type WebhookServer struct {
	// Port is one of 127.0.0.1 that is free.
	Port int
	// CertDir is a folder with a certificate for that address: tls.crt, and tls.key.
	CertDir string
}

// LeaderElection says by which Lease, and how quickly, a leader is elected.
type LeaderElection struct {
	// Namespace is where the Lease lies, Identity the name of this candidate in it.
	Namespace, Identity string
	// LeaseDuration is how long others wait for a leader that is silent,
	// RenewDeadline how long a leader tries to renew before it gives up, and
	// RetryPeriod the pause between two tries.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Child is one object that the operator makes for a resource and controls.
type Child struct {
	Kind schema.GroupVersionKind
	// Name is the object's name for a resource; the resource's own if nil. An
	// empty name says that a resource of this spec has no such child.
	Name func(resource *unstructured.Unstructured) string
	// Drift are JSON merge patches that the operator must undo, by what they do. Each must change the child, and the
	// operator must give every field that it changed another value; this is checked before Normalize.
	Drift map[string]string
	// Foreign are JSON merge patches of fields that belong to others, which the
	// operator must leave alone. A label and an annotation are tried always.
	Foreign map[string]string
	// Applied are parts of the child, as JSON, that others add by server-side apply and the operator must leave alone, by what
	// they do: for example a sidecar, {"spec":{"template":{"spec":{"containers":[{"name":"proxy","image":"proxy:1"}]}}}}. The API
	// server merges lists by their keys. Of an object with a template of pods, an annotation of the pods and a variable of the
	// first container are tried always, and of a ServiceAccount a reference to a Secret.
	Applied map[string]string
}

// Unmeetable is a spec that can't be met, and how to get there.
type Unmeetable struct {
	// Name completes "a resource whose …", such as "Deployment belongs to someone else".
	Name string
	// Patch is the JSON merge patch of the sample's spec that makes it unmeetable.
	Patch string
	// Prepare makes in the namespace what stands in the way. Nil if nothing is needed.
	Prepare func(ctx context.Context, writer client.Client, namespace string) error
}

// External is the world outside Kubernetes, such as a cloud's emulator.
type External interface {
	// Snapshot describes what exists there for the resources of a namespace, and is
	// empty when nothing does. It leaves out what differs between two resources of the same spec.
	Snapshot(ctx context.Context, namespace string) (string, error)
	// Fail makes every call fail until the returned function is called.
	Fail(namespace string) (restore func())
}

// Interrupter is an External at whose calls an operator can be killed. An
// External that is none may still be changed by an operator that is dead.
type Interrupter interface {
	External
	// Interrupt has begin called right before each call that changes what exists
	// for the resources of a namespace, with words for the call, until the returned
	// function is called; and it has end called right after the call took effect.
	// If begin returns an error, the call must have no effect. Either error is what
	// the operator gets in place of a result. Calls that change nothing are let pass.
	Interrupt(namespace string, begin func(call string) (end func() error, err error)) (restore func())
}

// NameFor is empty when the resource has no such child.
func (c Child) NameFor(resource *unstructured.Unstructured) string {
	if c.Name == nil {
		return resource.GetName()
	}
	return c.Name(resource)
}

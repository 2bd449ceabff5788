package operatortest

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Operator describes an operator to the kit. Paths are relative to the folder in which the tests run, which contains
// the test files. behaviours.DescribeSchema needs only the first group of fields.
type Operator struct {
	// CRDs are files and folders with the operator's CustomResourceDefinitions.
	CRDs []string
	// Samples is a folder with objects that the API server must accept.
	Samples string
	// InvalidSamples is a folder with files whose last object the API server must refuse. It must accept the objects
	// before that one. The first line of each file gives the reason: "# refused: " and part of the API server's message.
	InvalidSamples string

	// Run runs the operator against the API server of the configuration, until the context ends and the work in
	// progress is finished. The kit may run several operators at once in one process, so an operator must listen on free
	// ports, or on none. In trials that make requests fail, Run may return an error before its first write: the kit then
	// starts it again, up to ten times. If the context's cause is traffic.ErrKilled, the operator must end immediately, as
	// after kill -9.
	//
	// The context has a logger, which klog.FromContext and controller-runtime's log.FromContext return. The kit searches
	// the logger's output for panics and for the values of Secrets. Pass the logger to a manager as ctrl.Options.Logger.
	// A panic that isn't recovered still ends the test process; with the environment variable GODEBUG=tracebacklabels=1,
	// its traceback also names the trial.
	Run func(ctx context.Context, config *rest.Config, options RunOptions) error
	// Confine is for an operator that watches all namespaces and can't be restricted to one. The kit then redirects its
	// lists and watches of all namespaces to [RunOptions.Namespace]. In one trial of the "neighbours" behaviour, the kit
	// shows the operator a second namespace, too.
	Confine bool
	// AllNamespaces means that Run lets the operator watch all namespaces if [RunOptions.Namespace] is empty. The
	// "neighbours" behaviour then also tries resources of the same name in two namespaces, and the kit shows the operator
	// only these two. An operator with Confine doesn't need AllNamespaces.
	AllNamespaces bool
	// Webhooks lists files and folders with the operator's webhook configurations. Set testcluster.Cluster.Webhooks to
	// the same paths, so that the configurations are installed.
	Webhooks []string
	// ServesWebhooks means that Run serves webhooks at the address in [RunOptions.Webhooks]. Until all trials are done, the
	// kit then runs one more operator, in a namespace of its own, so the webhooks answer even while the operator of a
	// trial is dead. If ServesWebhooks is false, the suite itself must serve the cluster's webhooks, if there are any. The
	// same is true of a suite that calls behaviours.DescribeSchema, which runs no operator.
	ServesWebhooks bool
	// WebhooksOnly means that Run starts no controllers if [WebhookServer.Only] is true. The operator that serves the
	// webhooks may then read all namespaces, so its webhooks can look up other objects of a trial. Otherwise it sees only
	// its own namespace, in which there is nothing to reconcile, so that it leaves the resources of the trials alone.
	WebhooksOnly bool
	// Roles are files with the operator's Roles and ClusterRoles. The operator runs with these permissions and no
	// others. A Role applies in the namespace of each trial, which also contains the Lease. If Roles is empty, the
	// operator has all permissions, and the "least-privilege" behaviour is left out.
	Roles []string
	// Sample is the file of the custom resource on which the behaviours are tried. The operator must be able to
	// fulfil the resource's spec. Only the file's first object is used; Prepare creates whatever else the resource needs.
	//
	// In this object and in those of Samples and InvalidSamples, in the strings in Values, in all patches, and in
	// [Child.Applied], {{.Namespace}} stands for the name of the trial's namespace.
	Sample string
	// Prepare creates what the sample refers to, such as a ConfigMap, in a new namespace. It is nil if the sample needs
	// nothing. The name of a cluster-scoped object must contain the namespace's name, because trials run in parallel. The
	// kit deletes such objects at the end of the trial, and shows the operator only those of its own trial if they are
	// custom resources. If Prepare creates another of the operator's custom resources, the kit doesn't compare that
	// resource's children, but counts the writes for it.
	Prepare func(ctx context.Context, writer client.Client, namespace string) error
	// Condition is the type of the condition that is True while the resource is in
	// its desired state. If it is empty, the type is "Ready".
	Condition string
	// Converged returns an error that says what is missing, until the status says that the current spec is fulfilled. Set
	// it for an operator that reports its state without a condition, for example as a phase. If Converged is nil, the kit
	// uses Condition.
	Converged func(resource *unstructured.Unstructured) error
	// Children are the objects that the operator creates for a resource. The operator must not leave objects of other
	// kinds behind, except Events and Leases.
	Children []Child
	// MaxWrites is how many of the operator's writes may take effect by the time a new resource has converged and the
	// operator is at rest. Events, Leases and refused writes don't count.
	MaxWrites int
	// Drains means that the operator finishes the queued work and writes its Events before it ends. client-go's queue
	// makes the former possible; the latter needs an event recorder that waits until its Events are written.
	// controller-runtime's manager drops what is queued, and catches up after the next start; Events that are not yet
	// written are lost. Source: Provider.Stop in controller-runtime's pkg/internal/recorder.
	Drains bool
	// Values gives sensible values for spec fields, keyed by path, such as "spec.image". For a field without them, the kit
	// generates values from the field's schema.
	Values map[string][]any
	// Ascending lists the paths of spec fields that can only increase, such as a version: the API server accepts only values
	// that come after the current one in the field's Values. The fields can't be inside lists or maps.
	Ascending []string
	// Immutable lists the paths of the spec fields that can't be changed: the API server refuses every change.
	Immutable []string
	// Fixed lists the paths of spec fields that keep the sample's value in every behaviour, each with the reason. An
	// example is a field that preserves external resources when the custom resource is deleted: the kit would report a
	// leak.
	Fixed map[string]string
	// Required lists the paths of optional spec fields that have a value in every behaviour, each with the reason. An
	// example is the number of replicas, if the operator keeps a Deployment's last number when the field is unset.
	Required map[string]string
	// Unmeetable lists specs that the API server accepts but the operator can't fulfil.
	Unmeetable []Unmeetable
	// Normalize removes from a copy of an object what differs between two resources with the same spec, such as generated
	// names and random content. The kit itself ignores all metadata except the name, labels, annotations, finalizers,
	// owner references and whether the object is being deleted. It also ignores the children's status, what the API server
	// generates for a Service or a Job, the annotation in which the Deployment controller counts revisions, the
	// namespace's name, UIDs and the conditions' lastTransitionTime.
	Normalize func(object *unstructured.Unstructured)
	// LeftOut lists the behaviours that are not tried, each with the reason, which the report shows. To leave out a part
	// of a behaviour, add the part's name after a slash:
	//
	//	converges/observedGeneration  the conditions have no observedGeneration; the kit reads status.observedGeneration in any case
	//	converges/kstatus             another controller sets the resource's condition Reconciling or Stalled
	//	converges/order               the status doesn't say whether the children exist and their pods are ready
	//	silent/resync                 the operator has no setting for resyncs, so RunOptions.Resync has no effect
	//	drift/env                     only the operator may change the list of a container's variables
	//	drift/template-annotations    only the operator may change the annotations of a child's pod template
	//	drift/secrets                 only the operator may change a ServiceAccount's list of Secrets
	//	collision/event               the operator reports a name conflict only with a condition, without an Event
	//	misoperation/report           the operator reports what it can't do only in its log, not in the status or an Event
	//	misoperation/pods             the status describes the children themselves, whether or not their pods are running
	//	update/PATH                   a change to the field with this path has no effect until later
	//	secrets/KEY                   the value of this key in Secrets is not confidential, as in "secrets/host"
	//	secrets/log                   the operator logs nothing
	//	growth/memory                 the kit's objects don't fill a bounded cache, or the suite itself keeps objects
	//	least-privilege/VERB RESOURCE no trial makes the operator use this permission, as in
	//	                              "least-privilege/create tokenreviews.authentication.k8s.io"; the verb * stands for all
	//	                              verbs on the resource and on its subresources
	LeftOut map[string]string
	// External is the system outside Kubernetes in which the operator creates something. It is nil if there is none.
	External External
	// Seed is the seed for the random specs that the "transitions" behaviour tries. If it is zero, the kit uses 1. With
	// another seed, the kit tries other specs.
	Seed int64
	// MaxPause is the longest time for which the operator may do nothing although it has something left to do: the
	// interval at which it polls or requeues. A retry that sends no request to the API server, such as a call to
	// another system, counts as doing nothing. The minimum is two seconds. If MaxPause is zero, the interval is
	// unknown, and a wait that doesn't succeed lasts until Timeout.
	//
	// If MaxPause is set, the kit doesn't wait until Timeout for an operator that has stopped working. A wait ends if, for
	// at least MaxPause, the operator has made no request, its resources and children and the contents of External have
	// not changed, and Kubernetes' own controllers have nothing left to do for them.
	//
	// MaxPause need not include delays that grow after failures: the kit allows two seconds after a failed request of the
	// operator, twice as long after each subsequent one, and always at least four times the longest gap so far between two
	// of its requests.
	MaxPause time.Duration
	// Parallel is how many trials may run at the same time. If it is zero, the environment variable
	// OPERATORTEST_PARALLEL applies, or else there may be 12, whatever the number of cores, because trials mostly wait. A
	// trial runs operators of its own, so a smaller number helps if an operator needs a lot of memory, or if waits fail
	// only because the machine is busy. A few more trials, whose results others wait for, may run at the same time.
	Parallel int
	// Timeout bounds each wait for the operator. If it is zero, the environment variable OPERATORTEST_TIMEOUT applies, or
	// else one minute.
	Timeout time.Duration
}

// RunOptions tells an operator how the kit wants it to run.
type RunOptions struct {
	// Namespace is the only namespace that the operator may read and write. In a trial that [Operator.AllNamespaces]
	// permits, and for the operator that only serves webhooks (see [Operator.WebhooksOnly]), it is empty, which means all
	// namespaces. The name of a cluster-scoped child must contain the resource's namespace or, if the resource is
	// cluster-scoped, too, the resource's name. The kit restricts an operator's lists and watches of cluster-scoped custom
	// resources to those of the operator's trial.
	Namespace string
	// Resync is how often the informers pass all objects to the handlers again. Zero means the operator's default.
	Resync time.Duration
	// LeaderElection is nil if the operator must run without leader election.
	LeaderElection *LeaderElection
	// Webhooks says where to serve webhooks. It is nil unless [Operator.ServesWebhooks] is true.
	Webhooks *WebhookServer
	// LogFile makes the kit search a log file of the operator in the same way as the output of the logger in Run's
	// context. The file may be removed later. LogFile is nil outside the kit.
	LogFile func(path string) error
	// ProcessGroup tells the kit the ID of the process group in which the operator runs, so that the kit can measure its
	// processes. ProcessGroup is nil outside the kit.
	ProcessGroup func(id int)
}

// WebhookServer is where an operator serves its webhooks.
type WebhookServer struct {
	// Port is a free port on 127.0.0.1.
	Port int
	// CertDir is a folder with a certificate for that address: tls.crt and tls.key.
	CertDir string
	// Only means that this operator's webhooks are those that the API server calls, and that it has nothing to reconcile.
	// If [Operator.WebhooksOnly] is also true, the operator must start no controllers, and [RunOptions.Namespace] is
	// empty.
	Only bool
}

// LeaderElection says which Lease to use, and how quickly a leader is elected.
type LeaderElection struct {
	// Namespace is the Lease's namespace; Identity is this candidate's name in the Lease.
	Namespace, Identity string
	// LeaseDuration is how long others wait for a silent leader, RenewDeadline is how long a leader tries to renew the
	// Lease before it gives up, and RetryPeriod is the pause between tries.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Child is one object that the operator creates for a resource. It must have a controller reference to the resource, with
// the exceptions in Unowned and Retained.
type Child struct {
	Kind schema.GroupVersionKind
	// Name returns the child's name for a resource. If Name is nil, the child has the resource's own
	// name. An empty name means that a resource with this spec has no such child.
	Name func(resource *unstructured.Unstructured) string
	// Generated means that no function can return the name, because the API server or the operator generates it. The
	// child is then the only object of its kind that the resource controls and that has Labels. If Name is set and returns
	// an empty string, the resource still has no such child.
	Generated bool
	// Labels distinguish a generated child from other children of its kind.
	Labels map[string]string
	// Unowned means that the operator sets no controller reference on the child, and deletes the child itself, for example
	// before it removes its finalizer from the resource. The kit then identifies the child by its name. A cluster-scoped
	// child of a namespaced resource can have no such reference, and needs no Unowned.
	Unowned bool
	// Retained means that the child outlives the resource on purpose, as a PersistentVolumeClaim may. It has no owner
	// reference, or the operator removes the reference before the resource is gone. After the resource's deletion, the same
	// object must still exist. If the resource should no longer have the child because its spec was changed, the child may
	// stay, too. An object that has the child's name and no controller counts as one that an earlier resource has left, so
	// the operator may use it.
	Retained bool
	// Drift contains JSON merge patches that the operator must undo; each key says what its patch does. Each patch must
	// change the child. The operator must not leave any changed field as it is after the patch, even one that Normalize
	// ignores.
	Drift map[string]string
	// Foreign contains JSON merge patches to fields that belong to others; the operator must leave these fields alone.
	// Before it applies a patch from Drift, the kit applies all patches in Foreign, and also adds a label and an
	// annotation.
	Foreign map[string]string
	// Applied contains parts of the child, as JSON, that others add with server-side apply and the operator must leave
	// alone; each key describes its part. An example is a sidecar,
	// {"spec":{"template":{"spec":{"containers":[{"name":"proxy","image":"proxy:1"}]}}}}. The API server merges a list
	// whose items have a key, such as a container's name, by that key. Unless LeftOut names them, the kit also tries an
	// annotation of the pod template and a variable of the template's first container for a Deployment, StatefulSet,
	// DaemonSet or CronJob, and a reference to a Secret for a ServiceAccount.
	Applied map[string]string
}

// Unmeetable describes a spec that the operator can't fulfil, because of the spec itself or because other objects block
// the operator.
type Unmeetable struct {
	// Name completes "a resource whose …", such as "Deployment belongs to someone else".
	Name string
	// Patch is the JSON merge patch that makes the sample unmeetable.
	Patch string
	// Prepare creates in the namespace what blocks the operator. It is nil if nothing is needed.
	Prepare func(ctx context.Context, writer client.Client, namespace string) error
}

// External is a system outside Kubernetes, such as a cloud emulator.
type External interface {
	// Snapshot describes what exists there for the resources of a namespace; it is
	// empty if nothing does. It leaves out what differs between two resources with the same spec.
	Snapshot(ctx context.Context, namespace string) (string, error)
	// Fail makes every call for the resources of a namespace fail until the returned function is called.
	Fail(namespace string) (restore func())
}

// Interrupter is an External that lets the kit kill an operator right before or right after each of the operator's
// calls that change something there. Without Interrupt, a killed operator may still change the External.
type Interrupter interface {
	External
	// Interrupt makes sure that begin is called right before each call that changes what exists for the resources of a
	// namespace, and end right after that call has taken effect. The argument of begin describes the call. If begin
	// returns an error, the call must have no effect. If begin or end returns an error, the operator gets that error
	// instead of a result. Calls that change nothing are not interrupted. The returned function ends the interruptions.
	Interrupt(namespace string, begin func(call string) (end func() error, err error)) (restore func())
}

// NameFor returns the child's name for a resource, or "" if the resource has no such child. For a child whose name is
// generated, any other result means only that the resource has the child.
func (c Child) NameFor(resource *unstructured.Unstructured) string {
	if c.Name == nil {
		return resource.GetName()
	}
	return c.Name(resource)
}

// Package behaviours tests the behaviours that every operator must have. [DescribeSchema] generates specs for an
// operator's definitions and samples, and [DescribeOperator] for everything else: it runs the operator many times,
// through Operator.Run.
//
//	converges        a resource gets its children, and then a status that reports them and says which generation of
//	                 the resource it describes; the resource is Current according to kstatus
//	silent           once a resource has converged, nothing is written: not on resyncs, not after others' changes
//	                 that don't concern the operator, not after a restart; a server-side apply that changes nothing
//	                 doesn't count
//	frugal           no more than MaxWrites writes for a new resource, none that is refused as invalid, and at most
//	                 one that is refused because of a conflict
//	drift            a deleted child is created again, and a changed one is repaired; others' fields stay, and so do
//	                 their entries in lists
//	collision        someone else's object with a child's name is left alone and reported, and once it is gone, the
//	                 resource recovers; a write that the API server refuses doesn't count
//	update           each field of the spec, changed alone, takes effect, or is refused if it is declared immutable;
//	                 renames leave nothing behind
//	transitions      whatever specs came before, the final state is that of a fresh resource, even
//	                 after a spec that can't be met
//	misoperation     a problem is reported, and the work is retried with backoff until the problem is gone: a quota
//	                 that refuses objects, pods without a node or an image, a missing object
//	deletion         a deleted resource disappears, with its children and everything it had outside Kubernetes, and
//	                 the retained children stay; if another finalizer keeps it, nothing is written after the clean-up
//	early-deletion   a resource that is deleted while it is being created leaves nothing behind
//	namespace        a namespace that is deleted as a whole becomes empty, and nothing is left outside Kubernetes
//	neighbours       two resources don't touch each other's children and pods, whether they are in one namespace or
//	                 have the same name in two namespaces
//	crash            after a kill before or after any of its writes, a restarted operator reaches the same state
//	faults           conflicts, throttling, errors, timeouts and lost replies, on the operator's first requests and on
//	                 some later writes, only delay the operator, and so do broken watches; it may exit with an error
//	                 before its first write, and is then started again
//	history          after kills and failed requests, the operator recreates children and reverts their fields no more
//	                 often than it does when undisturbed
//	stale            an old view of the cluster leads to no duplicate and no lost change
//	time-travel      an operator that is restarted, and sees the past because its API server lags behind, does no harm
//	least-privilege  the operator's own roles suffice, and it needs each of their permissions
//	failover         with leader election a second replica takes over, and two never write at the same time; a late
//	                 write of the first one does no lasting harm
//	secrets          the contents of Secrets appear in no log, Event, status or other object
//	growth           resources that have come and gone leave no goroutine, watch or copy behind
//	shutdown         an operator that is told to stop finishes the work in progress and leaves no goroutine
//
// The spec of each behaviour has the behaviour's name as a label: go test -ginkgo.label-filter=crash tries only one.
// [Run] tries behaviours without Ginkgo, and returns a report; the command operatortest calls it. Try a single
// behaviour while you fix an operator: each wait for something that a broken operator never does takes
// [operatortest.Operator.Timeout], so a run of all behaviours may take many minutes. If
// [operatortest.Operator.MaxPause] is set, such a wait ends earlier when the operator has stopped working. The
// behaviours "drift", "collision" and "misoperation" need a child, and are skipped without
// [operatortest.Operator.Children].
//
// Every trial has a namespace of its own, or two, to which the operator is confined, so that trials can run in
// parallel. If the operator has no setting for one namespace, [operatortest.Operator.Confine] makes the kit confine it.
// The operator runs with the permissions of [operatortest.Operator.Roles] and no others; without Roles, it may do
// everything. A Tap of package traffic around the operator's rest.Config records and disturbs its requests, without
// changes to the operator's code. When an operator is killed, all its requests fail from then on; the goroutines that
// remain in the test process have no effect on the cluster any more.
//
// The kit gives cluster-scoped resources names that contain the name of the trial's namespace; the names that the
// operator gives to cluster-scoped children must contain it, too. If the sample's kind is cluster-scoped, or
// [operatortest.Operator.Prepare] creates cluster-scoped custom resources, the operator can list and watch only those
// objects of these kinds that belong to its trial.
//
// Final states are compared as a whole: all resources and children of the trial, and what exists outside
// Kubernetes. The comparison ignores the children's status, most of the metadata, what the API server generates for a
// Service or a Job, the namespace's name, UIDs, the conditions' lastTransitionTime, and objects that a child controls.
// Let [operatortest.Operator.Normalize] remove anything else that differs between two resources with the same spec.
//
// The kit also reports a write to an object that doesn't belong to the trial, and an object of an undeclared kind,
// except an Event or a Lease, that the operator created and didn't delete: declare its kind in
// [operatortest.Operator.Children].
//
// A panic is an error in every trial, even if the framework recovers from it, but not if the operator's own code does.
// The kit searches the operator's log for panics and for the values of Secrets. If the operator runs as a process of
// its own, the log is what that process prints; otherwise it is the output of the logger in Run's context, together
// with each file whose path Run passes to [operatortest.RunOptions.LogFile]. The behaviour "secrets" is reported as not
// tried if there were values to search for, but no log.
//
// A disturbance that changes nothing is an error, because any operator would pass the trial. Examples are a patch with
// a misspelt field, and one that sets the current value. Before it calls Normalize, the kit compares the fields that a
// patch of [operatortest.Child.Drift] changes: after the repair, none may still have the patch's value, even if the
// field's content is random. A trial that finds nothing to disturb is reported as not tried.
//
// Specs are generated from the definition's schema: from its bounds, enums, defaults, optional fields and lists. The
// kit leaves CEL rules to the API server, and drops every spec that the API server refuses. For strings whose form the
// schema doesn't specify, [operatortest.Operator.Values] lists sensible values, by paths such as spec.image,
// spec.pools[].size or spec.labels.*. Name the fields that can only increase, such as versions, in
// [operatortest.Operator.Ascending]. Sequences of specs are drawn at random, from [operatortest.Operator.Seed], so each
// run tries the same ones; a sequence that fails is shortened.
//
// If the operator manages something outside Kubernetes, describe that as an [operatortest.External]. If your
// External is also an [operatortest.Interrupter], the kit also kills the operator before and after each call that has
// an effect there.
//
// A failure shows what was expected, what was found, the last requests and log lines of each operator, and what to look
// at in the code.
package behaviours

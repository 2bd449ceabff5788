// Package operatortest is a test kit for Kubernetes operators. It starts a real
// control plane for the tests of one process and generates the specs that every
// operator must pass, from one value that describes the operator.
//
// A suite uses it with Ginkgo, in three steps: describe the operator, start a
// cluster, generate the specs. The package's example does all three.
//
// # The cluster
//
// [Cluster.Start] runs etcd and kube-apiserver through envtest, and beside them
// kube-controller-manager, kube-scheduler and kwok. So a namespace that is
// deleted really goes away, owner references are garbage-collected and
// Deployments become available on a few simulated nodes; with envtest alone
// none of this happens. Service accounts work as on any cluster too: a pod gets
// the one of its namespace, and a token made for it is valid.
//
// The programs come from the folder that KUBEBUILDER_ASSETS names, else from
// bin/ in the root of the workshop's repository. Everything listens on 127.0.0.1
// on free ports, keeps its files in one temporary folder and is ended by
// [Cluster.Stop]. If the test process is killed instead, a watchdog ends it.
//
// A pod that is bound to a node becomes ready at once, with whatever image.
// [Cluster.Stages] adds rules for pods that are to behave in other ways.
//
// Custom resource definitions given in [Cluster.CRDs] are installed before the
// controller manager starts, so that its garbage collector knows them at once.
// Of a definition installed later it learns within about 30 seconds; until then
// it does not collect the children of such objects.
//
// With USE_EXISTING_CLUSTER=true nothing is started. The tests run on the
// cluster that KUBECONFIG names; [Cluster.Stop] removes the definitions and
// webhooks that [Cluster.Start] created there. Definitions that it found are left,
// and to find webhooks of the same names is an error. Webhooks need a cluster whose
// API server can reach the test process.
//
// # Samples
//
// [DescribeSchema] reads two folders. Every object in a YAML file of
// [Operator.Samples] must be accepted under strict field validation, where an
// unknown or duplicate field is an error. Every file in
// [Operator.InvalidSamples] must be refused; its first line names a part of the
// message the API server must give, so that a file can't be refused for another
// reason than its author had in mind:
//
//	# refused: number in body should be less than or equal to 10
//
// # Behaviours
//
// [DescribeBehaviours] runs the operator inside the test process, many times, as
// [Operator.Run] says, and makes a spec of each behaviour:
//
//	converges        a resource gets its children, and a status that says so: conditions
//	                 with observedGeneration, Current by kstatus
//	silent           once converged, no write: not on resyncs, after others' changes, after a restart
//	frugal           no more than MaxWrites writes for a new resource
//	drift            a child that is deleted or changed comes back; fields of others stay
//	collision        an object with a child's name that belongs to somebody else is left alone
//	                 and reported, and its end heals the resource
//	update           each field of the spec, changed alone, takes effect; renames leave nothing behind
//	transitions      whatever specs came before, the end is that of a fresh resource; so it is after a
//	                 spec that can't be met
//	deletion         a deleted resource goes, with its children and what it had outside
//	crash            killed before and after each of its writes, a new start ends the same;
//	                 it may end with an error before its first write, and is started again
//	faults           conflicts, throttling, errors, timeouts, lost replies and broken watches delay it only
//	stale            an old view of the cluster leads to no duplicate and no lost change
//	least-privilege  it runs under its own roles, and needs each of their rules
//	failover         with leader election a second replica takes over, and two never write at once
//	shutdown         told to end, it finishes what it has begun and leaves no goroutine
//
// Each has a label of that name: go test -ginkgo.label-filter=crash tries one. Do that while you mend an
// operator: each wait for what a broken one never does takes [Operator.Timeout], and a run of all behaviours
// takes many minutes. Drift and collision need a child, and are skipped without [Operator.Children].
//
// Every trial has a namespace of its own, to which the operator is confined, so
// that trials run side by side. The operator runs with the permissions of
// [Operator.Roles] and no others. A Tap of
// package traffic around its rest.Config writes
// its requests down and disturbs them: the operator's code needs nothing for
// that. A killed operator is one whose requests all fail from then on; what is
// left of it in the process can do nothing any more.
//
// Ends are compared as a whole: all resources and children in the namespace and the world
// outside, without names, UIDs and times that differ every time. What else differs is taken
// out by [Operator.Normalize]. The kit also reports a write outside the trial's namespace,
// and an object of any other kind that the operator made and left: declare its kind in
// [Operator.Children].
//
// A disturbance that changes nothing is an error, for any operator would pass it: a misspelt patch, or one to
// the value that is there already. The fields that a patch of [Child.Drift] changes are compared
// before Normalize: after the repair they must have other values, even if these are random.
//
// Specs are made from the schema of the definition: bounds, enums, defaults,
// optional fields, lists. CEL rules are left to the API server: a spec that it
// refuses is dropped. For strings whose form the schema does not say,
// [Operator.Values] names sensible ones, by paths such as spec.image,
// spec.pools[].size or spec.labels.*. Where they may only rise, as versions do,
// [Operator.Ascending] says so. Sequences of specs are drawn from Ginkgo's
// seed; one that fails is shortened, and the report says how to draw it again.
//
// An operator with something outside Kubernetes describes that as an [External].
// If that is an [Interrupter] too, the operator is also killed before and after
// each call that has an effect there.
//
// A failure tells what was expected, what was found, the requests of each
// operator up to then, and what to look at in the code.
package operatortest

// Package behaviours holds what every operator must do, a file for each behaviour. [DescribeSchema] makes specs of an operator's
// definitions and samples, and [DescribeOperator] of everything else, by running the operator inside the test process, many
// times, as Operator.Run says:
//
//	converges        a resource gets its children, and then a status that says so: conditions
//	                 with observedGeneration, Current by kstatus
//	silent           once converged, no write: not on resyncs, after others' changes, after a restart
//	frugal           no more than MaxWrites writes for a new resource, and none that the API server must refuse
//	drift            a child that is deleted or changed comes back; fields of others stay, and
//	                 their entries in lists
//	collision        an object with a child's name that belongs to someone else is left alone
//	                 and reported, and its end heals the resource
//	update           each field of the spec, changed alone, takes effect; renames leave nothing behind
//	transitions      whatever specs came before, the end is that of a fresh resource; so it is after a
//	                 spec that can't be met
//	misoperation     what the cluster refuses, by a quota for example, pods without a node or an image, or what is
//	                 missing, is reported, and retried with backoff until it can be had
//	deletion         a deleted resource goes, with its children and what it had outside; while another
//	                 finalizer holds it, nothing more is written
//	early-deletion   a resource that is deleted while it is being made leaves nothing behind
//	namespace        a namespace that is deleted as a whole gets empty, and so does the world outside
//	neighbours       two resources in one namespace don't touch each other's children and pods
//	crash            killed before and after each of its writes, a new start ends the same;
//	                 it may end with an error before its first write, and is started again
//	faults           conflicts, throttling, errors, timeouts, lost replies and broken watches delay it only
//	history          killed or with failing requests, it deletes, makes anew and writes back no more than undisturbed
//	stale            an old view of the cluster leads to no duplicate and no lost change
//	time-travel      started again, and shown the past by an API server that lags behind, it harms nothing of the present
//	least-privilege  it runs under its own roles, and needs each of their rules
//	failover         with leader election a second replica takes over, and two never write at once; a write of
//	                 the first one that arrives late does no lasting harm
//	secrets          what is in Secrets is in no log, Event, status or other object
//	growth           after many resources have come and gone, none has left a goroutine, watch or copy
//	shutdown         told to end, it finishes what it has begun and leaves no goroutine
//
// Each has a label of that name: go test -ginkgo.label-filter=crash tries one. [Run] does the same without Ginkgo, and
// returns a report; the command operatortest calls it. Do that while you mend an
// operator: each wait for what a broken one never does takes [operatortest.Operator.Timeout], and a run of all behaviours
// takes many minutes. Drift, collision and misoperation need a child, and are skipped without [operatortest.Operator.Children].
//
// Every trial has a namespace of its own, to which the operator is confined, so
// that trials run side by side; one that has no setting for it is shown that namespace only, by [operatortest.Operator.Confine]. The operator runs with the permissions of
// [operatortest.Operator.Roles] and no others. A Tap of
// package traffic around its rest.Config writes
// its requests down and disturbs them: the operator's code needs nothing for
// that. A killed operator is one whose requests all fail from then on; what is
// left of it in the process can do nothing any more.
//
// Names of cluster-scoped objects end with the name of the trial's namespace. The operator's lists and watches of
// cluster-scoped resources select those of its trial.
//
// Ends are compared as a whole: all resources and children in the namespace and the world
// outside, without names, UIDs and times that differ every time. What else differs is taken
// out by [operatortest.Operator.Normalize]. The kit also reports a write outside the trial's namespace,
// and an object of any other kind that the operator made and left: declare its kind in
// [operatortest.Operator.Children].
//
// A panic is an error in every trial, also one that the framework recovers. What the operator logs is looked at for panics and
// for the values of Secrets: what it prints as a process, and in this process what goes through the logger in Run's context.
//
// A disturbance that changes nothing is an error, for any operator would pass it: a misspelt patch, or one to
// the value that is there already. The fields that a patch of [operatortest.Child.Drift] changes are compared
// before Normalize: after the repair they must have other values, even if these are random.
//
// Specs are made from the schema of the definition: bounds, enums, defaults,
// optional fields, lists. CEL rules are left to the API server: a spec that it
// refuses is dropped. For strings whose form the schema does not say,
// [operatortest.Operator.Values] names sensible ones, by paths such as spec.image,
// spec.pools[].size or spec.labels.*. Where they may only rise, as versions do,
// [operatortest.Operator.Ascending] says so. Sequences of specs are drawn at random, from
// [operatortest.Operator.Seed], so that each run tries the same ones; one that fails is shortened.
//
// An operator with something outside Kubernetes describes that as an [operatortest.External].
// If that is an [operatortest.Interrupter] too, the operator is also killed before and after
// each call that has an effect there.
//
// A failure tells what was expected, what was found, the requests of each
// operator up to then, and what to look at in the code.
package behaviours

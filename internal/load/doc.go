// Package load measures what a stage's controller costs under load: how long
// many new resources take to converge, how many requests that takes, whether the
// controller sends requests after that, and how much memory and processor time it uses.
//
// Package load can measure with several numbers of resources, such as 100 and 500. For each
// of them, package testcluster starts a new control plane. The controller is the stage's
// program. It runs as a separate process, under a service account with the stage's
// roles. Its requests are counted in the API server's audit log, which misses no request and
// needs no change to the controller.
//
// # What a stage provides
//
// By convention, in the stage's folder:
//
//	make build                       makes bin/manager
//	config/crd/bases/                holds the definitions
//	config/rbac/role.yaml            holds the roles; leader_election_role.yaml beside it may hold more
//	config/bench/load.yaml           says what to create; a stage without it is not measured
//
// The program runs with ENABLE_WEBHOOKS=false, a switch from kubebuilder's layout, and these flags:
//
//	--kubeconfig=FILE --metrics-bind-address=0 --health-probe-bind-address=0 --resync-period=10s
//
// In load.yaml:
//
//	resource     the custom resource to create many times, with NUMBER replaced by 1, 2, 3, …
//	idealWrites  the number of writes that a new resource needs until it has converged
//	args         additional flags for the program; may be left out
//	needs        objects to create before the program starts, such as a Secret; may be left out
//
// # What is measured
//
//	converge  ten writers create the resources; each has converged when it is Current according
//	          to kstatus and its condition Ready or Available is True, as seen in one watch
//	settle    the measurement waits, for at most half a minute, until no request has come for some seconds
//	idle      nothing happens but resyncs
//	restart   the program is stopped and started again, and the measurement waits as in the phase settle
//	baseline  the resources are deleted and the program is stopped; then, twice, ten writers create the
//	          children, the measurement waits until each is Current according to kstatus, and they
//	          are deleted
//	last      the program is started again, and the resources are created and converge as they did the first time
//
// # The baseline
//
// The control plane accounts for most of the time to converge: it rolls out
// Deployments, and creates ReplicaSets, pods and EndpointSlices. The ratio of the
// time with the operator to the time of the baseline shows the operator's own cost.
// The children are the objects that the operator created: all objects in the namespace
// that have a resource as their controlling owner. They are created again without that
// owner reference, without their status, and without what the API server adds to their metadata.
// If the operator created no children, the phases baseline and last are left out.
//
// With the operator, ten writers create the resources; without it, ten writers create the children.
// In both cases, the writers have no client-side rate limits, and watches show when the objects
// that they created have converged. The baseline has no custom resources: a user without an
// operator would not make any, so the requests that write them, their status and their events
// all count as the operator's cost. A control plane that has run for a while is not as fast as
// a new one. So the time is measured four times, in the order operator, baseline, baseline,
// operator, and the ratio is that of the means. Each measurement but the first begins when all
// objects of the previous one are gone, including pods, and the control plane has rested for some seconds.
//
// A request belongs to the phase in which it reached the API server. Peak memory
// is that of the first process up to the end of the idle phase.
package load

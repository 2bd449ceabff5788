// Package load measures what a stage's controller costs under load: how long
// many new resources take to converge, how many requests that needs, whether the
// controller is silent once all is well, and its memory and processor time.
//
// Each number of resources gets a control plane of its own, started by package
// operatortest. The controller is the stage's program, a process of its own
// under a service account with the stage's own roles. Its requests are counted
// in the API server's audit log, so neither the controller nor its client
// needs to know, and no request is missed.
//
// # What a stage brings
//
// By convention, in the stage's folder:
//
//	make build                       makes bin/manager
//	config/crd/bases/                holds the definitions
//	config/rbac/role.yaml            holds the roles; so may leader_election_role.yaml beside it
//	config/bench/load.yaml           says what to create; a stage without it is not measured
//
// The program runs with ENABLE_WEBHOOKS=false, the switch of kubebuilder's layout, and these flags:
//
//	--kubeconfig=FILE --metrics-bind-address=0 --health-probe-bind-address=0 --resync-period=10s
//
// In load.yaml:
//
//	resource     the custom resource to create many of; the word NUMBER in it stands for 1, 2, 3, …
//	idealWrites  the number of writes that a new resource needs until it has converged
//	args         further flags of the program; may be left out
//	needs        objects that are made before it starts, such as a Secret; may be left out
//
// # What is measured
//
//	converge  ten writers create the resources; each has converged when kstatus calls it Current
//	          and its condition Ready or Available is True, seen through one watch
//	settle    until no request comes for some seconds
//	idle      nothing happens but resyncs
//	restart   the program is ended and a new one started, until no request comes for some seconds
//	baseline  the resources are deleted and the program is ended; then ten writers create the children,
//	          each has converged when kstatus calls it Current, and they are deleted; all of this twice
//	last      the program is started again, and the resources converge as in the beginning
//
// # The baseline
//
// Most of the time to converge is the control plane's: it rolls out Deployments,
// and makes ReplicaSets, pods and EndpointSlices. The ratio of the time with the
// operator to that of the baseline leaves the operator's own cost. The children
// are what the operator made: all objects in the namespace with a resource as
// their controlling owner, without that owner reference, and without what the API
// server and controllers have added.
//
// Both are created by the same number of writers, without a limit of the client,
// and seen to converge through watches. The baseline has no custom resources: a
// user without an operator would not make any, so creating them, their status and
// their events all count as the operator's cost. A control plane that has run for
// a while is not as fast as a new one. So the order is operator, baseline,
// baseline, operator, and the ratio is that of the means. Each begins when
// all objects of the one before are gone, pods included, and the control plane is idle.
//
// A request belongs to the phase in which it reached the API server. Peak memory
// is that of the first process up to the end of the idle phase.
package load

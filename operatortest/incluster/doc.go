// Package incluster tests an operator from outside: as a cluster runs it, in pods,
// from an image, under its own roles and nothing else. Package operatortest runs
// the operator inside the test process, where it can be held back and killed at
// each of its writes; here nothing is known of it but what the API server shows.
//
// A suite describes the deployed operator as an [Operator], and puts the shared
// specs around its own, into one Ordered container, since they follow the
// operator from its arrival to its end:
//
//	var _ = Describe("the controller", Ordered, func() {
//		incluster.DescribeArrival(foo)  // deploys it
//		incluster.DescribeChildren(foo) // drift, collision, deletion
//		It("…")                       // what only this operator does
//		incluster.DescribeFailover(foo) // by the end of a pod, by a node that is drained
//		incluster.DescribeEnd(foo)      // removes it
//	})
//
// The specs work as you would: with kubectl and the project's Makefile, whose
// commands they print. `make test-e2e` prepares a cluster, puts the image there
// and sets what [Check] asks for.
//
// # Behaviours
//
//	arrival     both replicas become ready, in a namespace that takes restricted pods only, and one holds the Lease
//	metrics     are served over TLS to those whom the cluster allows it
//	drift       a child that is deleted or changed comes back
//	collision   an object with a child's name that belongs to someone else is left alone and reported;
//	            when it goes, the resource heals; deleted, the resource goes with its children
//	failover    the leader's pod is deleted: the other replica takes the Lease, which changes hands once, and works on
//	drain       the same when the leader's node is drained; needs two nodes that take pods
//	end         no container of the operator was restarted, and undeploying leaves nothing behind
package incluster

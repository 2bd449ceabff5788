// Package incluster tests an operator as a cluster runs it: in pods, from an
// image, with only the permissions of its own roles. Package behaviours runs the
// operator alongside the tests, where it can be delayed and killed at each of its
// writes; the specs of package incluster see it only from outside.
//
// A suite describes the deployed operator as an [Operator], and puts the shared
// specs before and after its own into one Ordered container, because they follow
// the operator from its deployment to its removal:
//
//	var _ = Describe("the controller", Ordered, func() {
//		incluster.DescribeArrival(foo)  // deploys it
//		incluster.DescribeChildren(foo) // drift, collision, deletion
//		It("…")                       // what only this operator does
//		incluster.DescribeFailover(foo) // deletes the leader's pod, drains its node
//		incluster.DescribeEnd(foo)      // removes it
//	})
//
// The specs do what you would do: they run kubectl and the targets of the project's Makefile, and print most of these
// commands. By default, `make test-e2e` creates a cluster, loads the image into it, and so meets the requirements of
// [Check].
//
// # Behaviours
//
//	arrival     all replicas become ready, in a namespace that accepts only restricted pods; one holds the Lease;
//	            and the samples reach their desired state
//	metrics     are served over TLS, to clients that the cluster allows to read them
//	drift       a child that is deleted or changed is restored
//	collision   an object that has a child's name but belongs to someone else is left alone and reported;
//	            once it is deleted, the resource recovers; when the resource is deleted, so are its children
//	failover    the leader's pod is deleted: another replica takes the Lease and continues; the Lease changes hands only
//	            once
//	drain       the same when the leader's node is drained; needs two nodes that accept pods
//	end         no container of the operator was restarted, and undeploying leaves nothing behind
package incluster

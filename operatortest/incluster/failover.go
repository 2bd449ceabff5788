package incluster

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// DescribeFailover defines the specs in which the leader's pod is deleted, or its node is drained. The second is
// skipped if fewer than two nodes accept pods.
func DescribeFailover(o Operator) {
	ginkgo.It("continues in another pod when the leader's pod is deleted", func(ctx ginkgo.SpecContext) {
		o.fails(ctx, "failover by pod deletion", func(ctx context.Context, leader string) error {
			_, err := TryKubectl(ctx, "delete", "pod", leader, "--namespace="+o.Namespace)
			return err
		})
	}, ginkgo.SpecTimeout(Timeout))

	ginkgo.It("continues in another pod when the leader's node is drained", func(ctx ginkgo.SpecContext) {
		if nodes := workers(ctx); len(nodes) < 2 {
			ginkgo.Skip(fmt.Sprintf("left out: draining a node needs two nodes that accept pods, and there is only %d", len(nodes)))
		}
		node := o.placed(ctx)[o.Leader(ctx)]
		gomega.Expect(node).NotTo(gomega.BeEmpty(), "the leader must run on a node")
		ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { Kubectl(ctx, "uncordon", node) }, ginkgo.NodeTimeout(commandTimeout))
		began := time.Now()
		o.fails(ctx, "failover by node drain", func(ctx context.Context, _ string) error {
			_, err := TryKubectl(ctx, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=3m")
			measured("drain of the node", began)
			return err
		})
		gomega.Expect(o.placed(ctx)).NotTo(gomega.ContainElement(node), "no pod of the operator may be left on the drained node")
	}, ginkgo.SpecTimeout(2*Timeout))
}

// fails removes the leader in the given way, waits until another replica has the Lease, and deletes a child, which that
// replica must recreate. Then it checks that the Lease has changed hands only once.
func (o Operator) fails(ctx ginkgo.SpecContext, what string, takeAway func(ctx context.Context, leader string) error) {
	ginkgo.GinkgoHelper()
	o.WaitForRollout(ctx)
	var former string
	gomega.Eventually(func() string { former = o.Leader(ctx); return former }).WithContext(ctx).Should(gomega.BeElementOf(o.Pods(ctx)), "one of the pods must hold the Lease")
	transitions := o.transitions(ctx)

	began := time.Now()
	gone := make(chan error, 1)
	go func() { gone <- takeAway(ctx, former) }()
	gomega.Eventually(o.Leader).WithContext(ctx).WithPolling(leaderInterval).ShouldNot(gomega.BeElementOf("", former), "another pod must take the Lease")
	measured(what, began)
	o.bringsBack(ctx, o.Children[0].Name)
	measured(what+", until it works", began)

	gomega.Eventually(gone).WithContext(ctx).WithTimeout(4*time.Minute).Should(gomega.Receive(gomega.BeNil()), "the former leader's pod must be gone")
	o.WaitForRollout(ctx)
	o.WaitUntilConverged(ctx)
	gomega.Expect(o.transitions(ctx)).To(gomega.Equal(transitions+1), "the Lease must change hands only once; more often would mean that two replicas may have worked at the same time")
}

// transitions returns how many times the Lease has changed hands.
func (o Operator) transitions(ctx context.Context) int {
	ginkgo.GinkgoHelper()
	text := Field(ctx, o.Namespace, "lease/"+o.Lease, "{.spec.leaseTransitions}")
	transitions, err := strconv.Atoi(text)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return transitions
}

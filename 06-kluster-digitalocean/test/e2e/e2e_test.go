//go:build e2e

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/incluster"
)

// interrupted is a Kluster whose cluster is still being created when the operator's pod is deleted.
const interrupted = `{apiVersion: inspirit941.dev/v1alpha1, kind: Kluster, metadata: {name: interrupted}, spec: {name: interrupted, region: fra1,
version: latest, tokenSecret: {name: digitalocean}, nodePools: [{name: workers, size: s-2vcpu-4gb, count: 1}]}}`

// The specs build on each other: they follow the operator from its installation to its removal.
var _ = Describe("the operator", Ordered, func() {
	BeforeAll(startCloud, NodeTimeout(incluster.Timeout))

	incluster.DescribeArrival(kluster)

	It("creates each sample's cluster once, and stores its kubeconfig in a Secret", func(ctx SpecContext) {
		Expect(clusters(ctx)).To(ConsistOf("small", "shop"), "the clusters in the cloud")
		Expect(effective(ctx, "create cluster", "small")).To(Equal(1), "creations of the cluster small in the cloud's journal")
		Expect(effective(ctx, "create cluster", "shop")).To(Equal(1), "creations of the cluster shop in the cloud's journal")
		Expect(incluster.Kubectl(ctx, "get", "secret/small-kubeconfig", "--namespace="+klusterNamespace, "--output=go-template={{.data.kubeconfig | base64decode}}")).
			To(ContainSubstring("kind: Config"), "the Secret must contain a kubeconfig")
	}, SpecTimeout(incluster.Timeout))

	It("creates one cluster even if the leader's pod is deleted in the meantime", func(ctx SpecContext) {
		_, err := incluster.KubectlWith(ctx, interrupted, "create", "--namespace="+klusterNamespace)
		Expect(err).NotTo(HaveOccurred())
		Eventually(progress).WithContext(ctx).Should(Equal("provisioning"), "the cloud must be creating the cluster")
		incluster.Kubectl(ctx, "delete", "pod", kluster.Leader(ctx), "--namespace="+namespace, "--wait=false")
		Expect(progress(ctx)).To(Equal("provisioning"), "the cloud must still be creating the cluster when the operator's pod is deleted")

		kluster.WaitUntilConverged(ctx)
		Expect(effective(ctx, "create cluster", "interrupted")).To(Equal(1), "creations of the cluster in the cloud's journal")
		kluster.WaitForRollout(ctx)
	}, SpecTimeout(incluster.Timeout))

	It("deletes the cluster with its Kluster", func(ctx SpecContext) {
		incluster.Kubectl(ctx, "delete", "kluster/interrupted", "--timeout=2m", "--namespace="+klusterNamespace)
		Expect(clusters(ctx)).To(ConsistOf("small", "shop"), "when the Kluster is gone, its cluster must be gone, too")
		Expect(effective(ctx, "delete cluster", "interrupted")).To(Equal(1), "deletions of the cluster in the cloud's journal")
	}, SpecTimeout(incluster.Timeout))

	incluster.DescribeChildren(kluster)
	incluster.DescribeFailover(kluster)

	It("has created no cluster twice", func(ctx SpecContext) {
		Expect(clusters(ctx)).To(ConsistOf("small", "shop"), "the clusters in the cloud")
		Expect(effective(ctx, "create cluster", "shop")).To(Equal(1), "creations of the cluster shop in the cloud's journal")
	}, SpecTimeout(incluster.Timeout))

	incluster.DescribeEnd(kluster)

	It("leaves no cluster behind", func(ctx SpecContext) {
		Expect(clusters(ctx)).To(BeEmpty(), "the clusters in the cloud")
	}, SpecTimeout(incluster.Timeout))
})

// progress returns the cluster's state from the status of the interrupted Kluster.
func progress(ctx context.Context) string {
	GinkgoHelper()
	return incluster.Field(ctx, klusterNamespace, "kluster/interrupted", "{.status.progress}")
}

//go:build e2e

package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/incluster"
)

// The specs build on each other: they follow the manager from its installation to its removal.
var _ = Describe("the manager", Ordered, func() {
	incluster.DescribeArrival(memcached)

	It("gives each Memcached a Service for its pods, and a budget if it has several pods", func(ctx SpecContext) {
		// +kubebuilder:scaffold:e2e-metrics-webhooks-readiness

		nodes := incluster.Field(ctx, memcachedNamespace, "memcached/memcached-full", "{.status.nodes[*]}")
		Expect(strings.Fields(nodes)).To(ConsistOf(podsOf(ctx, "memcached-full")), "the status must name the pods")
		Eventually(addressed).WithContext(ctx).WithArguments("memcached-full").Should(ConsistOf(podsOf(ctx, "memcached-full")), "the headless Service must have the address of each pod")
		budgets := incluster.Kubectl(ctx, "get", "poddisruptionbudgets", "--namespace="+memcachedNamespace, "--output=name")
		Expect(strings.Fields(budgets)).To(ConsistOf("poddisruptionbudget.policy/memcached-full"), "only a Memcached with several pods may have a budget")
	}, SpecTimeout(incluster.Timeout))

	It("makes memcached answer in each pod, with the memory that the spec asks for", func(ctx SpecContext) {
		for _, pod := range podsOf(ctx, "memcached-full") {
			Expect(ask(ctx, "pod/"+pod, "set greeting 0 0 5", "hello")).To(Equal("STORED"))
			Expect(ask(ctx, "pod/"+pod, "get greeting")).To(Equal("VALUE greeting 0 5"))
			Expect(askUntil(ctx, "pod/"+pod, "STAT limit_maxbytes ", "stats")).To(Equal("STAT limit_maxbytes 134217728"), "memcached must use the 128 MiB of spec.memoryMegabytes")
		}
	}, SpecTimeout(incluster.Timeout))

	It("makes memcached reachable through the Service", func(ctx SpecContext) {
		Expect(ask(ctx, "service/memcached-full", "set farewell 0 0 3", "bye")).To(Equal("STORED"))
		Expect(ask(ctx, "service/memcached-full", "get farewell")).To(Equal("VALUE farewell 0 3"))
	}, SpecTimeout(incluster.Timeout))

	It("reports an image that can't be pulled, and recovers with the next one", func(ctx SpecContext) {
		image := incluster.Field(ctx, memcachedNamespace, "memcached/memcached-full", "{.spec.image}")
		setImage(ctx, "image.invalid/memcached:1")
		incluster.Kubectl(ctx, "wait", "memcached/memcached-full", "--for=condition=Degraded", "--timeout=2m", "--namespace="+memcachedNamespace)
		incluster.Kubectl(ctx, "wait", "memcached/memcached-full", "--for=condition=Available", "--timeout=10s", "--namespace="+memcachedNamespace)

		setImage(ctx, image)
		incluster.Kubectl(ctx, "wait", "memcached/memcached-full", "--for=condition=Degraded=false", "--timeout=2m", "--namespace="+memcachedNamespace)
		memcached.WaitUntilConverged(ctx)
	}, SpecTimeout(incluster.Timeout))

	incluster.DescribeChildren(memcached)

	// +kubebuilder:scaffold:e2e-webhooks-checks

	incluster.DescribeFailover(memcached)

	It("keeps a Memcached until its pods are gone", func(ctx SpecContext) {
		incluster.Kubectl(ctx, "delete", "memcached/memcached-full", "--timeout=2m", "--namespace="+memcachedNamespace)
		pods := incluster.Kubectl(ctx, "get", "pods", "--namespace="+memcachedNamespace, "--selector=app.kubernetes.io/instance=memcached-full", "--output=name")
		Expect(pods).To(BeEmpty(), "kubectl waits for the Memcached, which waits for its pods")
	}, SpecTimeout(incluster.Timeout))

	incluster.DescribeEnd(memcached)
})

// podsOf returns the names of a Memcached's pods that are not terminating.
func podsOf(ctx context.Context, memcached string) []string {
	GinkgoHelper()
	return incluster.PodsWith(ctx, memcachedNamespace, "app.kubernetes.io/instance="+memcached)
}

func setImage(ctx context.Context, image string) {
	GinkgoHelper()
	incluster.Kubectl(ctx, "patch", "memcached/memcached-full", "--namespace="+memcachedNamespace, "--type=merge", `--patch={"spec":{"image":"`+image+`"}}`)
}

// addressed returns the names of the pods in the EndpointSlices of a Memcached's Service.
func addressed(ctx context.Context, memcached string) []string {
	GinkgoHelper()
	return strings.Fields(incluster.Kubectl(ctx, "get", "endpointslices", "--namespace="+memcachedNamespace,
		"--selector=kubernetes.io/service-name="+memcached, "--output=jsonpath={.items[*].endpoints[*].targetRef.name}"))
}

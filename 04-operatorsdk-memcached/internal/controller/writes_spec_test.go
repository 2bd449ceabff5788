package controller_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"

	"example.com/operator-workshop/operatortest/traffic"
)

const statusPatch = "patch memcacheds.cache.example.com/status"

var _ = Describe("the writes", func() {
	It("are six at most for a new Memcached with one pod", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		tap := traffic.New()
		startManager(tap.Config(cluster.Config), testOptions(namespace))
		memcached := newMemcached(namespace, "frugal", 1)
		create(ctx, memcached)
		expectConditions(ctx, memcached, converged)
		consistently(ctx, func(g Gomega) { // and nothing else
			writes := writesSince(tap, 0)
			g.Expect(writes[:3]).To(Equal([]string{"patch memcacheds.cache.example.com", "create deployments.apps", "create services"}), "the finalizer must come first")
			g.Expect(writes[3:]).To(HaveEach(statusPatch))
			g.Expect(len(writes)).To(BeNumerically("<=", 6), "the status may be written once for the children, once for the pod, and once when the pod is ready: %q", writes)
		})
	}, SpecTimeout(specTimeout))

	It("of the status each change something while the pods are replaced", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		tap := traffic.New()
		startManager(tap.Config(cluster.Config), testOptions(namespace))
		memcached := newMemcached(namespace, "rolling", 2)
		create(ctx, memcached)
		expectConditions(ctx, memcached, converged)
		versions, before := watchVersions(ctx, memcached), len(tap.Requests())

		patch(ctx, memcached, `{"spec":{"memoryMegabytes":128}}`)
		expectConditions(ctx, memcached, converged)
		seen, changes := versionsUpTo(ctx, versions, memcached), 0
		for i := range seen[1:] {
			if !equality.Semantic.DeepEqual(seen[i].Status, seen[i+1].Status) {
				changes++
			}
		}
		writes := writesSince(tap, before)
		Expect(writes[0]).To(Equal("patch deployments.apps"))
		Expect(writes[1:]).To(And(HaveLen(changes), HaveEach(statusPatch)), "a patch that changes nothing is an unnecessary request, see updateStatus in memcached_controller.go")
		Expect(changes).To(BeNumerically("<=", 8), "the status may change once at the beginning, three times for each new pod, and once at the end")
	}, SpecTimeout(specTimeout))
})

package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// The invalid samples show what the rules refuse. These specs try changes that too strict a rule would refuse, and
// others that are only just invalid.
var _ = Describe("the rules in types.go", func() {
	version := func(value string) func(*klusterv1alpha1.KlusterSpec) {
		return func(spec *klusterv1alpha1.KlusterSpec) { spec.Version = value }
	}
	pools := func(pools ...klusterv1alpha1.NodePool) func(*klusterv1alpha1.KlusterSpec) {
		return func(spec *klusterv1alpha1.KlusterSpec) { spec.NodePools = pools }
	}
	web := klusterv1alpha1.NodePool{Name: "web", Size: "s-2vcpu-4gb", Count: 1}
	jobs := klusterv1alpha1.NodePool{Name: "jobs", Size: "s-2vcpu-4gb", Count: 1}
	larger := klusterv1alpha1.NodePool{Name: "web", Size: "c-4", Count: 1}
	scaled := klusterv1alpha1.NodePool{Name: "web", Size: "s-2vcpu-4gb", Autoscale: &klusterv1alpha1.Autoscale{MinNodes: 2, MaxNodes: 2}}

	DescribeTable("when a Kluster is changed", func(ctx SpecContext, before, after func(*klusterv1alpha1.KlusterSpec), refusal string) {
		kluster := newKluster(cluster.Namespace(ctx), "shop")
		before(&kluster.Spec)
		Expect(cluster.Client.Create(ctx, kluster)).To(Succeed())
		after(&kluster.Spec)
		err := cluster.Client.Update(ctx, kluster, client.DryRunAll)
		if refusal == "" {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "the API server should refuse the change as invalid, found: %v", err)
		Expect(err).To(MatchError(ContainSubstring(refusal)))
	},
		Entry("allow a later minor version, even from 9 to 10", version("1.9"), version("1.10"), "", SpecTimeout(specTimeout)),
		Entry("refuse an earlier minor version, even from 10 to 9", version("1.10"), version("1.9"), "can't go back", SpecTimeout(specTimeout)),
		Entry("refuse a slug of an earlier minor version", version("1.37"), version("1.36.5-do.1"), "can't go back", SpecTimeout(specTimeout)),
		Entry("allow any patch, which the operator checks later", version("1.36.5-do.1"), version("1.36.3-do.0"), "", SpecTimeout(specTimeout)),
		Entry("allow a slug to become its minor version", version("1.36.5-do.1"), version("1.36"), "", SpecTimeout(specTimeout)),
		Entry("allow a version to become latest", version("1.36"), version("latest"), "", SpecTimeout(specTimeout)),
		Entry("allow latest to become a version, which the operator checks later", version("latest"), version("1.36"), "", SpecTimeout(specTimeout)),
		Entry("allow pools in another order", pools(web, jobs), pools(jobs, web), "", SpecTimeout(specTimeout)),
		Entry("refuse another size, even in another order", pools(web, jobs), pools(jobs, larger), "size of a node pool can't be changed", SpecTimeout(specTimeout)),
		Entry("allow a new pool of another size to replace a pool", pools(jobs), pools(larger), "", SpecTimeout(specTimeout)),
		Entry("allow autoscale with equal bounds", pools(web), pools(scaled), "", SpecTimeout(specTimeout)),
		Entry("refuse a pool that has lost its autoscale and has no count", pools(scaled),
			pools(klusterv1alpha1.NodePool{Name: "web", Size: "s-2vcpu-4gb"}), "needs a count", SpecTimeout(specTimeout)),
	)
})

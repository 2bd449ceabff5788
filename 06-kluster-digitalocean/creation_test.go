package main

import (
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	"example.com/operator-workshop/doks"
)

// creating returns a fault for the request that creates a cluster.
func creating(kind doks.FaultKind, after bool) doks.Fault {
	return doks.Fault{Method: http.MethodPost, Path: clustersPath, Kind: kind, After: after}
}

// lagging returns a fault that hides new clusters from lists for a while.
func lagging(delay time.Duration) doks.Fault {
	return doks.Fault{Method: http.MethodGet, Path: clustersPath, Kind: doks.FaultLaggingList, Delay: doks.Duration(delay), Count: doks.Always}
}

// notFoundFor returns a function that responds with the API's own "not found" to requests that have the method, and a
// path that contains the words.
func notFoundFor(method, words string) func(http.ResponseWriter, *http.Request) bool {
	return func(writer http.ResponseWriter, request *http.Request) bool {
		if request.Method != method || !strings.Contains(request.URL.Path, words) {
			return false
		}
		writer.Header().Set("Content-Type", "application/json")
		writer.WriteHeader(http.StatusNotFound)
		_, _ = writer.Write([]byte(`{"id":"not_found","message":"The resource you requested could not be found."}`))
		return true
	}
}

var _ = Describe("one Kluster makes one cluster", func() {
	DescribeTable("though its creation", func(ctx SpecContext, faults []doks.Fault) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		disturb(account, faults...)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectOneCluster(kluster)
		expectCondition(kluster, klusterv1alpha1.ConditionProvisioned, metav1.ConditionTrue, klusterv1alpha1.ReasonRunning)
		expectCondition(kluster, klusterv1alpha1.ConditionCredentialsReady, metav1.ConditionTrue, klusterv1alpha1.ReasonTokenAccepted)
		Expect(account.Faults()).To(Or(BeEmpty(), HaveEach(HaveField("Count", doks.Always))), "some faults were never injected")
	},
		Entry("is dropped before it takes effect", []doks.Fault{creating(doks.FaultDrop, false)}, SpecTimeout(specTimeout)),
		Entry("takes effect, and the connection drops", []doks.Fault{creating(doks.FaultDrop, true)}, SpecTimeout(specTimeout)),
		Entry("takes effect, and the answer is cut off", []doks.Fault{creating(doks.FaultCut, false)}, SpecTimeout(specTimeout)),
		Entry("takes effect, and the answer is 500", []doks.Fault{creating(doks.FaultServerError, true)}, SpecTimeout(specTimeout)),
		Entry("takes effect, and the answer is a proxy's page", []doks.Fault{creating(doks.FaultBadGateway, true)}, SpecTimeout(specTimeout)),
		Entry("takes effect, and the answer is 503", []doks.Fault{creating(doks.FaultUnavailable, true)}, SpecTimeout(specTimeout)),
		Entry("fails twice before it takes effect", []doks.Fault{creating(doks.FaultServerError, false), creating(doks.FaultBadGateway, false)}, SpecTimeout(specTimeout)),
		Entry("takes effect, the answer is lost, and the list lags behind", []doks.Fault{creating(doks.FaultDrop, true), lagging(500 * time.Millisecond)}, SpecTimeout(specTimeout)),
		Entry("takes effect, the answer is cut off, and the list fails", []doks.Fault{
			creating(doks.FaultCut, false),
			{Method: http.MethodGet, Path: clustersPath, Kind: doks.FaultCut, Skip: 2},
			{Method: http.MethodGet, Path: clustersPath, Kind: doks.FaultBadGateway, Skip: 2},
		}, SpecTimeout(specTimeout)),
	)

	It("and the second of two Klusters with the same name waits until the name is free, and changes nothing", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		first := create(ctx, namespace, "first")
		expectReason(ctx, first, klusterv1alpha1.ReasonRunning)
		expectOneCluster(first)
		before := account.Clusters()[0]
		account.ClearJournal()

		second := newKluster(namespace, "second")
		second.Spec.Name = "first"
		second.Spec.NodePools[0].Count = 3
		Expect(cluster.Client.Create(ctx, second)).To(Succeed())
		expectReason(ctx, second, klusterv1alpha1.ReasonNameTaken)
		Expect(second.Status.KlusterID).To(BeEmpty(), "the cluster is not this Kluster's")
		consistently(ctx, func(g Gomega) {
			g.Expect(account.Clusters()).To(ConsistOf(before), "the first Kluster's cluster must stay as it is")
			g.Expect(requests(account, http.MethodPut, http.MethodDelete)).To(BeEmpty())
		})
		Expect(account.Effective("create cluster")).To(BeEmpty())

		expectGone(ctx, first)
		expectReason(ctx, second, klusterv1alpha1.ReasonRunning)
		Expect(second.Status.KlusterID).NotTo(Equal(first.Status.KlusterID))
		expectOneCluster(second)
	}, SpecTimeout(specTimeout))

	It("and deleting a Kluster whose name was taken leaves the other's cluster alone", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startOperator(testOptions(namespace))
		first := create(ctx, namespace, "first")
		expectReason(ctx, first, klusterv1alpha1.ReasonRunning)
		second := newKluster(namespace, "second")
		second.Spec.Name = "first"
		Expect(cluster.Client.Create(ctx, second)).To(Succeed())
		expectReason(ctx, second, klusterv1alpha1.ReasonNameTaken)

		expectGone(ctx, second)
		expectOneCluster(first)
		Expect(requests(clouds.of(namespace), http.MethodDelete)).To(BeEmpty(), "see findCluster in reconcile.go")
		expectReason(ctx, first, klusterv1alpha1.ReasonRunning)
	}, SpecTimeout(specTimeout))

	DescribeTable("and does not report it as lost if the cloud does not find", func(ctx SpecContext, method, path string) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		restore := clouds.answer(namespace, notFoundFor(method, path))
		DeferCleanup(restore)
		Expect(cluster.Client.Delete(ctx, readSecret(ctx, Default, namespace, "shop-kubeconfig"))).To(Succeed())
		change(ctx, kluster, func() { kluster.Spec.NodePools[0].Count = 2 })
		ready := expectReason(ctx, kluster, klusterv1alpha1.ReasonUnavailable)
		Expect(ready.Message).NotTo(ContainSubstring("delete"), "the cluster still exists, see cloudError in errors.go")
		restore()
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		Expect(account.Clusters()).To(ConsistOf(HaveField("ID", kluster.Status.KlusterID)))
		eventually(ctx, func(g Gomega) {
			g.Expect(eventsOf(ctx, g, kluster)).To(And(ContainElement(klusterv1alpha1.ReasonUnavailable), Not(ContainElement(klusterv1alpha1.ReasonLost))))
		})
	},
		Entry("a node pool", http.MethodPut, "/node_pools/", SpecTimeout(specTimeout)),
		Entry("its kubeconfig", http.MethodGet, "/kubeconfig", SpecTimeout(specTimeout)),
	)

	It("and does not create it again after someone has deleted it in the cloud", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		id := kluster.Status.KlusterID
		Expect(account.Remove(id)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonLost)
		expectCondition(kluster, klusterv1alpha1.ConditionProvisioned, metav1.ConditionTrue, klusterv1alpha1.ReasonRunning)
		consistently(ctx, func(g Gomega) {
			g.Expect(account.Effective("create cluster")).To(HaveLen(1), "see act in reconcile.go")
			g.Expect(kluster.Status.KlusterID).To(Equal(id), "the recorded ID must not change")
		})
		expectGone(ctx, kluster)
	}, SpecTimeout(specTimeout))
})

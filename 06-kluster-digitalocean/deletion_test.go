package main

import (
	"errors"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	"example.com/operator-workshop/doks"
)

// deleting returns a fault for the request that deletes a cluster.
func deleting(kind doks.FaultKind, after bool) doks.Fault {
	return doks.Fault{Method: http.MethodDelete, Path: clusterPath, Kind: kind, After: after}
}

// looking returns a fault for the request that gets a cluster.
func looking(kind doks.FaultKind, count int) doks.Fault {
	return doks.Fault{Method: http.MethodGet, Path: clusterPath, Kind: kind, Count: count}
}

var _ = Describe("a deleted Kluster stays until its cluster is gone", func() {
	DescribeTable("even if", func(ctx SpecContext, faults []doks.Fault) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectOneCluster(kluster)

		disturb(account, faults...)
		expectGone(ctx, kluster)
		Expect(account.Clusters()).To(BeEmpty())
		Expect(account.Effective("delete cluster")).To(HaveLen(1), "exactly one deletion must take effect")
	},
		Entry("the deletion is dropped before it takes effect", []doks.Fault{deleting(doks.FaultDrop, false)}, SpecTimeout(specTimeout)),
		Entry("the deletion takes effect, and the connection drops", []doks.Fault{deleting(doks.FaultDrop, true)}, SpecTimeout(specTimeout)),
		Entry("the deletion takes effect, and the answer is 500", []doks.Fault{deleting(doks.FaultServerError, true)}, SpecTimeout(specTimeout)),
		Entry("the answers to the deletion are 503 and a proxy's page", []doks.Fault{deleting(doks.FaultUnavailable, false), deleting(doks.FaultBadGateway, false)}, SpecTimeout(specTimeout)),
		Entry("the cloud is busy", []doks.Fault{deleting(doks.FaultTooMany, false), looking(doks.FaultTooMany, 2)}, SpecTimeout(specTimeout)),
		Entry("requests for the cluster fail in many ways", []doks.Fault{
			looking(doks.FaultServerError, 1), looking(doks.FaultBadGateway, 1), looking(doks.FaultCut, 1), looking(doks.FaultDrop, 1),
		}, SpecTimeout(specTimeout)),
	)

	It("even if the cloud's library can't read the state of a cluster that is being deleted", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.open(namespace, func(options *doks.Options) { options.DeleteState = doks.StateDeleting })
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		disturb(account, deleting(doks.FaultStuckDelete, false))
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		eventually(ctx, func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(kluster), kluster)).To(Succeed())
			g.Expect(kluster.Status.Progress).To(Equal("deleting"))
		})
		other := create(ctx, namespace, "other") // to find its cluster, the operator reads a list that contains the first one
		expectReason(ctx, other, klusterv1alpha1.ReasonRunning)
		expectReason(ctx, kluster, klusterv1alpha1.ReasonDeleting)
		Expect(account.Remove(kluster.Status.KlusterID)).To(Succeed())
		expectGone(ctx, kluster)
		expectGone(ctx, other)
		Expect(account.Effective("delete cluster")).To(HaveLen(2))
	}, SpecTimeout(specTimeout))

	It("and reports that it is waiting if the deletion in the cloud never ends", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		disturb(account, deleting(doks.FaultStuckDelete, false))
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		ready := expectReason(ctx, kluster, klusterv1alpha1.ReasonDeleting)
		Expect(ready.Message).To(ContainSubstring(kluster.Status.KlusterID), "people need the ID to report the problem to the cloud")
		consistently(ctx, func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(kluster), kluster)).To(Succeed(), "the Kluster must stay until its cluster is gone")
		})
		Expect(account.Remove(kluster.Status.KlusterID)).To(Succeed())
		expectGone(ctx, kluster)
	}, SpecTimeout(specTimeout))

	It("even if the answer to its creation is lost, and the list lags behind", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		disturb(account, creating(doks.FaultDrop, true), lagging(time.Second))
		options := testOptions(namespace)
		options.consistencyWindow = 3 * time.Second
		startOperator(options)
		kluster := create(ctx, namespace, "shop")
		eventually(ctx, func(g Gomega) {
			g.Expect(account.Effective("create cluster")).To(HaveLen(1))
		})
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonDeleting)
		Expect(kluster.Status.KlusterID).To(BeEmpty(), "the list still hides the cluster")
		expectGone(ctx, kluster)
		Expect(account.Effective("create cluster")).To(HaveLen(1))
		Expect(account.Effective("delete cluster")).To(HaveLen(1), "see consistencyWindow in deletion.go")
	}, SpecTimeout(specTimeout))

	DescribeTable("even if the creation takes effect only long after the Kluster was deleted, and its answer", func(ctx SpecContext, after func() error) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		disturb(account, lagging(500*time.Millisecond))
		proceed := make(chan struct{})
		release := sync.OnceFunc(func() { close(proceed) })
		account.Interrupt(func(call doks.Call) (func() error, error) {
			if call.Operation != "create cluster" {
				return nil, nil
			}
			<-proceed
			return after, nil
		})
		options := testOptions(namespace)
		startOperator(options)
		DeferCleanup(release)
		kluster := create(ctx, namespace, "shop")
		eventually(ctx, func(g Gomega) { g.Expect(requests(account, http.MethodPost)).NotTo(BeEmpty()) })
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		deleted := time.Now()
		Eventually(func() time.Duration { return time.Since(deleted) }).WithContext(ctx).
			WithTimeout(specTimeout).Should(BeNumerically(">", options.consistencyWindow+quietTime/5))
		release()
		expectGone(ctx, kluster)
		Expect(account.Effective("create cluster")).To(HaveLen(1))
		Expect(account.Effective("delete cluster")).To(HaveLen(1), "see consistencyWindow in deletion.go")
	},
		Entry("is lost", func() error { return errors.New("the connection is gone") }, SpecTimeout(specTimeout)),
		Entry("arrives", nil, SpecTimeout(specTimeout)),
	)

	It("even if its status was lost, and it was deleted while no operator was running", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		stop := startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		stop()
		kluster.Status = klusterv1alpha1.KlusterStatus{} // as after restoring a backup, which omits the status
		Expect(cluster.Client.Status().Update(ctx, kluster)).To(Succeed())
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())

		startOperator(testOptions(namespace))
		expectGone(ctx, kluster)
		Expect(account.Effective("delete cluster")).To(HaveLen(1), "see isFinished in deletion.go")
		expectProtectedBy(ctx, namespace, "digitalocean")
	}, SpecTimeout(specTimeout))

	It("even if the cloud does not show the new cluster for a while, neither by its ID nor in its list", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		laggingGet := doks.Fault{Method: http.MethodGet, Path: clusterPath, Kind: doks.FaultLaggingGet, Delay: doks.Duration(time.Hour), Count: doks.Always}
		disturb(account, lagging(time.Hour), laggingGet)
		options := testOptions(namespace)
		options.consistencyWindow = 3 * time.Second
		startOperator(options)
		kluster := create(ctx, namespace, "shop")
		eventually(ctx, func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(kluster), kluster)).To(Succeed())
			g.Expect(kluster.Status.KlusterID).NotTo(BeEmpty())
		})
		ready := expectReason(ctx, kluster, klusterv1alpha1.ReasonUnavailable)
		Expect(ready.Message).To(ContainSubstring("does not show cluster "+kluster.Status.KlusterID+" yet"), "the message must not advise deleting it")
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonDeleting)
		expectKept(ctx, kluster)
		account.ClearFaults()
		expectGone(ctx, kluster)
		Expect(account.Effective("delete cluster")).To(HaveLen(1), "see consistencyWindow in deletion.go")
	}, SpecTimeout(specTimeout))

	It("even if the cluster is still being created", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.open(namespace, hourlong)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		eventually(ctx, func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(kluster), kluster)).To(Succeed())
			g.Expect(kluster.Status.Progress).To(Equal("provisioning"))
		})
		expectReason(ctx, kluster, klusterv1alpha1.ReasonProvisioning)
		expectGone(ctx, kluster)
		Expect(account.Effective("delete cluster")).To(HaveLen(1))
	}, SpecTimeout(specTimeout))

	It("even if the token is missing for a while", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		setToken(ctx, namespace, "")
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonTokenMissing)
		setToken(ctx, namespace, readOnlyTokenFor(namespace))
		expectReason(ctx, kluster, klusterv1alpha1.ReasonTokenRejected)
		Expect(account.Clusters()).To(HaveLen(1))
		setToken(ctx, namespace, tokenFor(namespace))
		expectGone(ctx, kluster)
		Expect(account.Effective("delete cluster")).To(HaveLen(1))
	}, SpecTimeout(specTimeout))

	It("even if the cloud is down for a while", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		restore := clouds.Fail(namespace)
		DeferCleanup(restore)
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonUnavailable)
		restore()
		expectGone(ctx, kluster)
		Expect(account.Effective("delete cluster")).To(HaveLen(1))
	}, SpecTimeout(specTimeout))

	It("and is removed if someone has already deleted the cluster in the cloud", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		Expect(account.Remove(kluster.Status.KlusterID)).To(Succeed())
		expectGone(ctx, kluster)
	}, SpecTimeout(specTimeout))

	It("and then the operator leaves other finalizers alone, and sends nothing more to the cloud", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := newKluster(namespace, "shop")
		kluster.Finalizers = []string{"example.com/theirs"}
		Expect(cluster.Client.Create(ctx, kluster)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		Expect(cluster.Client.Delete(ctx, kluster)).To(Succeed())
		eventually(ctx, func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(kluster), kluster)).To(Succeed())
			g.Expect(kluster.Finalizers).To(ConsistOf("example.com/theirs"))
		})
		Expect(account.Clusters()).To(BeEmpty())
		account.ClearJournal()
		consistently(ctx, func(g Gomega) { // the cache may lag behind briefly, so a few requests are allowed
			g.Expect(len(account.Journal())).To(BeNumerically("<", 3), "the operator has nothing more to ask the cloud")
		})
		change(ctx, kluster, func() { kluster.Finalizers = nil })
		expectGone(ctx, kluster)
	}, SpecTimeout(specTimeout))
})

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	"example.com/operator-workshop/06-kluster-digitalocean/internal/digitalocean"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	"example.com/operator-workshop/doks"
)

var _ = Describe("a cluster's problem in the cloud is reported as", func() {
	It("failed", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		clouds.open(namespace, func(options *doks.Options) { options.EndState = doks.StateError })
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		ready := expectReason(ctx, kluster, klusterv1alpha1.ReasonFailed)
		Expect(ready.Message).To(ContainSubstring("provisioning failed"), "the message must contain the cloud's own words")
		Expect(kluster.Status.Progress).To(Equal("error"))
		expectCondition(kluster, klusterv1alpha1.ConditionProvisioned, metav1.ConditionFalse, klusterv1alpha1.ReasonProvisioning)
		expectOneCluster(kluster)
		expectGone(ctx, kluster) // a failed cluster costs money, too
	}, SpecTimeout(specTimeout))

	It("degraded, until the cluster is healthy again", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		Expect(account.SetState(kluster.Status.KlusterID, doks.StateDegraded, "a disk is slow")).To(Succeed())
		ready := expectReason(ctx, kluster, klusterv1alpha1.ReasonDegraded)
		Expect(ready.Message).To(ContainSubstring("a disk is slow"))
		Expect(account.SetState(kluster.Status.KlusterID, doks.StateRunning, "")).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
	}, SpecTimeout(specTimeout))

	It("refused, with the reason, until the cloud accepts the spec", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.open(namespace, func(options *doks.Options) { options.DropletLimit = 2 })
		startOperator(testOptions(namespace))
		kluster := newKluster(namespace, "shop")
		kluster.Spec.NodePools[0].Count = 3
		Expect(cluster.Client.Create(ctx, kluster)).To(Succeed())
		ready := expectReason(ctx, kluster, klusterv1alpha1.ReasonRefused)
		Expect(ready.Message).To(ContainSubstring("not enough available droplet limit"))
		Expect(account.Clusters()).To(BeEmpty())
		change(ctx, kluster, func() { kluster.Spec.NodePools[0].Count = 2 })
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		expectOneCluster(kluster)
	}, SpecTimeout(specTimeout))

	It("unavailable, with a message that doesn't change with every retry", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		disturb(account, looking(doks.FaultBadGateway, doks.Always))
		ready := expectReason(ctx, kluster, klusterv1alpha1.ReasonUnavailable)
		Expect(ready.Message).To(And(ContainSubstring("502 Bad Gateway"), Not(ContainSubstring("<html>"))), "see messageOf in request.go")
		account.ClearFaults()
		disturb(account, looking(doks.FaultServerError, doks.Always))
		eventually(ctx, func(g Gomega) {
			ready = expectReason(ctx, kluster, klusterv1alpha1.ReasonUnavailable)
			g.Expect(ready.Message).To(ContainSubstring("Unexpected server-side error"))
		})
		version := kluster.ResourceVersion
		account.ClearJournal()
		eventually(ctx, func(g Gomega) { g.Expect(len(account.Journal())).To(BeNumerically(">", 1)) })
		expectReason(ctx, kluster, klusterv1alpha1.ReasonUnavailable)
		Expect(kluster.ResourceVersion).To(Equal(version), "a request ID in a message would cause a write at each retry")
		account.ClearFaults()
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
	}, SpecTimeout(specTimeout))
})

var _ = Describe("a Kluster stays Ready, without an event, while the cloud", func() {
	DescribeTable("", func(ctx SpecContext, edit func(*klusterv1alpha1.NodePool), act func(ctx context.Context, namespace, pool string), wantCount int) {
		namespace := newNamespace(ctx)
		clock := clocktesting.NewFakeClock(time.Now())
		account := clouds.open(namespace, func(options *doks.Options) { options.Clock = clock })
		startOperator(testOptions(namespace))
		DeferCleanup(func(ctx SpecContext) { // a deletion takes time on the fake clock, too
			Expect(cluster.Client.DeleteAllOf(ctx, &klusterv1alpha1.Kluster{}, client.InNamespace(namespace))).To(Succeed())
			eventually(ctx, func(g Gomega) {
				clock.Step(time.Minute)
				g.Expect(account.Clusters()).To(BeEmpty())
			})
		}, NodeTimeout(specTimeout))
		kluster := newKluster(namespace, "shop")
		edit(&kluster.Spec.NodePools[0])
		Expect(cluster.Client.Create(ctx, kluster)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonProvisioning)
		clock.Step(time.Minute)
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)

		pool := account.Clusters()[0].NodePools[0]
		act(ctx, namespace, clustersPath+"/"+kluster.Status.KlusterID+"/node_pools/"+pool.ID)
		expectMachines := func(running int) {
			GinkgoHelper()
			eventually(ctx, func(g Gomega) {
				g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(kluster), kluster)).To(Succeed())
				g.Expect(kluster.Status.NodePools).To(ConsistOf(And(HaveField("Count", BeEquivalentTo(wantCount)), HaveField("Running", BeEquivalentTo(running)))))
			})
			expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		}
		expectMachines(1) // the fake clock has not moved
		clock.Step(time.Minute)
		expectMachines(wantCount)
		eventually(ctx, func(g Gomega) {
			g.Expect(eventsOf(ctx, g, kluster)).To(ConsistOf(klusterv1alpha1.ReasonProvisioning, klusterv1alpha1.ReasonRunning), "see wasReady in compare.go")
		})
	},
		Entry("replaces a machine", func(pool *klusterv1alpha1.NodePool) { pool.Count = 2 }, replaceMachine, 2, SpecTimeout(specTimeout)),
		Entry("adds machines by itself", func(pool *klusterv1alpha1.NodePool) {
			pool.Count, pool.Autoscale = 1, &klusterv1alpha1.Autoscale{MinNodes: 1, MaxNodes: 3}
		}, addMachines, 3, SpecTimeout(specTimeout)),
	)
})

// replaceMachine replaces a machine, as the cloud does when one is broken.
func replaceMachine(ctx context.Context, namespace, pool string) {
	GinkgoHelper()
	node := clouds.of(namespace).Clusters()[0].NodePools[0].Nodes[0]
	send(ctx, namespace, http.MethodDelete, pool+"/nodes/"+node.ID+"?replace=1", "")
}

// addMachines adds machines, as the cloud's autoscaler does.
func addMachines(ctx context.Context, namespace, pool string) {
	GinkgoHelper()
	send(ctx, namespace, http.MethodPut, pool, `{"name":"web","count":3}`)
}

// send sends a request for which cloud.CloudProvider has no method. The cloud must accept it.
func send(ctx context.Context, namespace, method, path, body string) {
	GinkgoHelper()
	request := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+tokenFor(namespace))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	clouds.of(namespace).ServeHTTP(answer, request)
	Expect(answer.Code).To(Equal(http.StatusAccepted), answer.Body.String())
}

var _ = Describe("a cluster is made to match the spec", func() {
	It("when node pools are resized, added and removed in the cloud", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startOperator(testOptions(namespace))
		kluster := newKluster(namespace, "shop")
		kluster.Spec.NodePools = append(kluster.Spec.NodePools, klusterv1alpha1.NodePool{Name: "jobs", Size: "s-4vcpu-8gb", Count: 1})
		Expect(cluster.Client.Create(ctx, kluster)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		wanted := snapshot(ctx, namespace)

		base, err := url.Parse(clouds.url())
		Expect(err).NotTo(HaveOccurred())
		console := digitalocean.New(tokenFor(namespace), base, http.DefaultTransport)
		found, err := console.Get(ctx, kluster.Status.KlusterID)
		Expect(err).NotTo(HaveOccurred())
		_, err = console.UpdatePools(ctx, found, []cloud.Pool{
			{Name: "web", Size: "s-2vcpu-4gb", Count: 2, Labels: map[string]string{"tier": "theirs"}},
			{Name: "theirs", Size: "s-2vcpu-4gb", Count: 1},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(requests(clouds.of(namespace), http.MethodDelete)).NotTo(BeEmpty(), "UpdatePools must have removed the pool jobs")
		eventually(ctx, func(g Gomega) { g.Expect(snapshot(ctx, namespace)).To(Equal(wanted), "see UpdatePools in pools.go") })
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
	}, SpecTimeout(specTimeout))

	DescribeTable("when the version is changed", func(ctx SpecContext, from, to, want string) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		startOperator(testOptions(namespace))
		kluster := newKluster(namespace, "shop")
		kluster.Spec.Version = from
		Expect(cluster.Client.Create(ctx, kluster)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		before := kluster.Status.Version
		change(ctx, kluster, func() { kluster.Spec.Version = to })
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		Expect(kluster.Status.Version).To(Equal(want))
		upgrades := 0
		if want != before {
			upgrades = 1
		}
		Expect(account.Effective("upgrade cluster")).To(HaveLen(upgrades))
	},
		Entry("to a later patch", "1.36.3-do.0", "1.36.5-do.1", "1.36.5-do.1", SpecTimeout(specTimeout)),
		Entry("to a later minor version", "1.36", "1.37", "1.37.1-do.0", SpecTimeout(specTimeout)),
		Entry("to its own minor version, which it satisfies", "1.36.3-do.0", "1.36", "1.36.3-do.0", SpecTimeout(specTimeout)),
		Entry("to latest, which any version satisfies", "1.35", "latest", "1.35.9-do.2", SpecTimeout(specTimeout)),
	)

	It("except for a downgrade, which is reported as refused", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startOperator(testOptions(namespace))
		kluster := newKluster(namespace, "shop")
		kluster.Spec.Version = "1.36.5-do.1"
		Expect(cluster.Client.Create(ctx, kluster)).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		change(ctx, kluster, func() { kluster.Spec.Version = "1.36.3-do.0" })
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRefused)
		Expect(kluster.Status.Version).To(Equal("1.36.5-do.1"))
		change(ctx, kluster, func() { kluster.Spec.Version = "1.36" })
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
	}, SpecTimeout(specTimeout))
})

var _ = Describe("events", func() {
	It("report each transition once", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.open(namespace, func(options *doks.Options) {
			options.ProvisionTime, options.NodeTime = time.Second, 0 // on a busy machine, a quick cluster could run before the operator looks at it
		})
		options := testOptions(namespace)
		stop := startOperator(options)
		kluster := create(ctx, namespace, "shop")
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		stop()
		startOperator(options) // a restart is not a transition
		Expect(account.SetState(kluster.Status.KlusterID, doks.StateDegraded, "slow")).To(Succeed())
		expectReason(ctx, kluster, klusterv1alpha1.ReasonDegraded)
		looks := len(account.Journal())
		eventually(ctx, func(g Gomega) {
			g.Expect(len(account.Journal())).To(BeNumerically(">", looks+5), "the operator must keep polling")
		})
		expectGone(ctx, kluster)
		eventually(ctx, func(g Gomega) {
			g.Expect(eventsOf(ctx, g, kluster)).To(ConsistOf(klusterv1alpha1.ReasonProvisioning, klusterv1alpha1.ReasonRunning,
				klusterv1alpha1.ReasonDegraded, klusterv1alpha1.ReasonDeleting, klusterv1alpha1.ReasonDeleted))
		})
	}, SpecTimeout(specTimeout))
})

// snapshot describes the clusters in a namespace's account, and their node pools.
func snapshot(ctx context.Context, namespace string) string {
	GinkgoHelper()
	text, err := clouds.Snapshot(ctx, namespace)
	Expect(err).NotTo(HaveOccurred())
	return text
}

// hourlong makes the creation of a cluster take longer than any spec.
func hourlong(options *doks.Options) { options.ProvisionTime = time.Hour }

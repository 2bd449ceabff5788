package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	"example.com/operator-workshop/doks"
)

var _ = Describe("a busy cloud", func() {
	It("is left alone for as long as it asks", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		const wait = time.Second // Retry-After counts whole seconds
		disturb(account, doks.Fault{Method: http.MethodPost, Path: clustersPath, Kind: doks.FaultTooMany, RetryAfter: doks.Duration(wait)})
		startOperator(testOptions(namespace))
		kluster := create(ctx, namespace, "shop")
		ready := expectReason(ctx, kluster, klusterv1alpha1.ReasonUnavailable)
		Expect(ready.Message).To(Equal(rateMessage))
		expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		journal := account.Journal()
		for i, entry := range journal {
			if entry.Status == http.StatusTooManyRequests {
				Expect(journal[i+1].Time.Sub(entry.Time)).To(BeNumerically(">=", wait), "the next request is %s", journal[i+1])
			}
		}
		expectOneCluster(kluster)
	}, SpecTimeout(specTimeout))

	It("gets no request with a token for which it has asked for a pause", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		options := testOptions(namespace)
		options.workers = 1 // with more workers, the other Kluster's request may already be on its way
		options.outageThreshold = time.Minute
		startOperator(options)
		klusters := []*klusterv1alpha1.Kluster{create(ctx, namespace, "first"), create(ctx, namespace, "second")}
		for _, kluster := range klusters {
			expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		}
		const wait = 2 * time.Second // longer than observeInterval, so both Klusters are reconciled during the pause
		disturb(account, doks.Fault{Kind: doks.FaultTooMany, RetryAfter: doks.Duration(wait)})
		refusal := func(entry doks.Entry) bool { return entry.Status == http.StatusTooManyRequests }
		var after []doks.Entry
		eventually(ctx, func(g Gomega) {
			journal := account.Journal()
			at := slices.IndexFunc(journal, refusal)
			g.Expect(at).To(BeNumerically(">=", 0))
			after = journal[at:]
			g.Expect(len(after)).To(BeNumerically(">", 1))
		})
		Expect(after[1].Time.Sub(after[0].Time)).To(BeNumerically(">=", wait), "the next request is %s: see tokenState in cloud.go", after[1])
		for _, kluster := range klusters {
			expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		}
		eventually(ctx, func(g Gomega) {
			all := append(eventsOf(ctx, g, klusters[0]), eventsOf(ctx, g, klusters[1])...)
			g.Expect(all).NotTo(ContainElement(klusterv1alpha1.ReasonUnavailable), "a short pause isn't worth reporting, see report in status.go")
		})
	}, SpecTimeout(specTimeout))

	It("delays Klusters that are created or deleted during a pause, and they report the pause", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		options := testOptions(namespace)
		options.workers = 1
		startOperator(options)
		first, second := create(ctx, namespace, "first"), create(ctx, namespace, "second")
		expectReason(ctx, first, klusterv1alpha1.ReasonRunning)
		expectReason(ctx, second, klusterv1alpha1.ReasonRunning)
		disturb(account, doks.Fault{Kind: doks.FaultTooMany, RetryAfter: doks.Duration(5 * time.Second)})
		eventually(ctx, func(g Gomega) {
			g.Expect(account.Journal()).To(ContainElement(HaveField("Status", http.StatusTooManyRequests)))
		})
		third := create(ctx, namespace, "third")
		Expect(cluster.Client.Delete(ctx, second)).To(Succeed())
		for _, kluster := range []*klusterv1alpha1.Kluster{third, second} {
			Expect(expectReason(ctx, kluster, klusterv1alpha1.ReasonUnavailable).Message).To(Equal(rateMessage))
		}
		expectReason(ctx, third, klusterv1alpha1.ReasonRunning)
	}, SpecTimeout(specTimeout))

	It("gets no more requests than --do-api-qps allows, from all workers together", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := clouds.of(namespace)
		options := testOptions(namespace)
		options.workers, options.pollInterval = 4, 10*time.Millisecond
		options.cloud.qps, options.cloud.burst = 40, 1
		begun := time.Now()
		startOperator(options)
		var klusters []*klusterv1alpha1.Kluster
		for i := range 4 {
			klusters = append(klusters, create(ctx, namespace, fmt.Sprint("shop-", i)))
		}
		for _, kluster := range klusters {
			expectReason(ctx, kluster, klusterv1alpha1.ReasonRunning)
		}
		requests := len(account.Journal())
		allowed := options.cloud.qps*time.Since(begun).Seconds() + float64(options.cloud.burst)
		Expect(float64(requests)).To(BeNumerically("<=", allowed), "see limitedTransport in cloud.go")
	}, SpecTimeout(specTimeout))

	It("keeps no worker waiting while it creates clusters", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		addAccount(ctx, namespace, "slow", hourlong)
		options := testOptions(namespace)
		options.workers = 1
		startOperator(options)
		for i := range 3 {
			slow := newKluster(namespace, fmt.Sprint("slow-", i))
			slow.Spec.TokenSecret.Name = "slow"
			Expect(cluster.Client.Create(ctx, slow)).To(Succeed())
			expectReason(ctx, slow, klusterv1alpha1.ReasonProvisioning)
		}
		expectReason(ctx, create(ctx, namespace, "shop"), klusterv1alpha1.ReasonRunning)
	}, SpecTimeout(specTimeout))

	It("holds up only the worker that is waiting for its answer", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		slow := addAccount(ctx, namespace, "slow", func(*doks.Options) {})
		proceed := make(chan struct{})
		release := sync.OnceFunc(func() { close(proceed) })
		slow.Interrupt(func(doks.Call) (func() error, error) {
			<-proceed
			return nil, nil
		})
		options := testOptions(namespace)
		options.workers = 2
		startOperator(options)
		DeferCleanup(release)
		hung := newKluster(namespace, "hung")
		hung.Spec.TokenSecret.Name = "slow"
		Expect(cluster.Client.Create(ctx, hung)).To(Succeed())
		eventually(ctx, func(g Gomega) { g.Expect(slow.Journal()).NotTo(BeEmpty()) })

		expectReason(ctx, create(ctx, namespace, "shop"), klusterv1alpha1.ReasonRunning)
		Expect(slow.Journal()).To(ConsistOf(HaveField("Done", false)), "the request for the other Kluster must still be waiting")
		release()
		expectReason(ctx, hung, klusterv1alpha1.ReasonRunning)
		Expect(slow.Effective("create cluster")).To(HaveLen(1))
	}, SpecTimeout(specTimeout))

	It("may be down for a while: each of 100 Klusters in 4 accounts still gets exactly one cluster, which is deleted with it", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		var names []string
		restore := map[string]func(){}
		for i := range 4 {
			name := fmt.Sprint("account-", i)
			addAccount(ctx, namespace, name, func(*doks.Options) {})
			names = append(names, name)
		}
		setDown := func() {
			for _, name := range names {
				restore[name] = clouds.Fail(accountName(namespace, name))
			}
		}
		setUp := func() {
			for _, name := range names {
				restore[name]()
			}
		}
		options := testOptions(namespace)
		options.workers = 8
		options.pollInterval, options.observeInterval = 100*time.Millisecond, time.Minute // Klusters with a running cluster are at rest
		setDown()
		startOperator(options)
		DeferCleanup(setUp)
		for i := range 100 {
			kluster := newKluster(namespace, fmt.Sprint("shop-", i))
			kluster.Spec.TokenSecret.Name = names[i%len(names)]
			Expect(cluster.Client.Create(ctx, kluster)).To(Succeed())
		}
		expectUnavailable(ctx, namespace)
		setUp()
		expectAll(ctx, namespace, 100, klusterv1alpha1.ReasonRunning)
		setDown()
		Expect(cluster.Client.DeleteAllOf(ctx, &klusterv1alpha1.Kluster{}, client.InNamespace(namespace))).To(Succeed())
		expectUnavailable(ctx, namespace)
		setUp()
		expectAll(ctx, namespace, 0, "")
		for _, name := range names {
			account := clouds.of(accountName(namespace, name))
			Expect(account.Clusters()).To(BeEmpty())
			Expect(account.Effective("create cluster")).To(HaveLen(25))
			Expect(account.Effective("delete cluster")).To(HaveLen(25))
		}
	}, SpecTimeout(2*specTimeout))

	It("gets requests, which a metric counts by method and status code", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		before := map[string]float64{}
		for _, code := range []string{"201", "429", "none"} {
			before[code] = countPosts(code)
		}
		disturb(clouds.of(namespace), creating(doks.FaultTooMany, false), creating(doks.FaultDrop, false))
		startOperator(testOptions(namespace))
		expectReason(ctx, create(ctx, namespace, "shop"), klusterv1alpha1.ReasonRunning)
		for code, count := range before {
			Expect(countPosts(code)-count).To(BeEquivalentTo(1), "count of POST requests with the code %s, see limitedTransport in cloud.go", code)
		}
	}, SpecTimeout(specTimeout))
})

// accountName returns the name of an account that a spec uses in addition to its namespace's own.
func accountName(namespace, name string) string { return namespace + "-" + name }

// addAccount opens an account in addition to the namespace's own. In the namespace, it creates a Secret with the given
// name, which holds the new account's token.
func addAccount(ctx context.Context, namespace, name string, change func(*doks.Options)) *doks.Emulator {
	GinkgoHelper()
	account := clouds.open(accountName(namespace, name), change)
	Expect(cluster.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type:       klusterv1alpha1.TokenSecretType,
		Data:       map[string][]byte{"token": []byte(tokenFor(accountName(namespace, name)))},
	})).To(Succeed())
	return account
}

// reasonsIn counts the Klusters in a namespace that have the Ready condition, by its reason.
func reasonsIn(ctx context.Context, g Gomega, namespace string) map[string]int {
	list := &klusterv1alpha1.KlusterList{}
	g.Expect(cluster.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	reasons := map[string]int{}
	for _, kluster := range list.Items {
		for _, condition := range kluster.Status.Conditions {
			if condition.Type == klusterv1alpha1.ConditionReady {
				reasons[condition.Reason]++
			}
		}
	}
	return reasons
}

func expectUnavailable(ctx context.Context, namespace string) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		g.Expect(reasonsIn(ctx, g, namespace)).To(HaveKey(klusterv1alpha1.ReasonUnavailable))
	})
}

// expectAll waits until exactly this many Klusters in the namespace have the Ready condition, all with this reason.
func expectAll(ctx context.Context, namespace string, count int, reason string) {
	GinkgoHelper()
	want := map[string]int{}
	if count > 0 {
		want[reason] = count
	}
	Eventually(func(g Gomega) { g.Expect(reasonsIn(ctx, g, namespace)).To(Equal(want)) }).
		WithContext(ctx).WithPolling(5 * checkInterval).WithTimeout(specTimeout).Should(Succeed())
}

// countPosts returns how many POST requests with this code the metric kluster_cloud_requests_total has counted.
func countPosts(code string) float64 {
	GinkgoHelper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() != "kluster_cloud_requests_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["method"] == http.MethodPost && labels["code"] == code {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

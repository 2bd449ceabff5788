//workshop:given 3.3a

package controller_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
	"example.com/operator-workshop/operatortest/traffic"
)

var _ = Describe("the settings", func() {
	It("roll the pods of every Guestbook that uses them when their content changes", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		settings := newSettings(namespace, "page-settings", "Welcome")
		guestbooks := []*webappv1.Guestbook{newGuestbook(namespace, "first", 2), newGuestbook(namespace, "second", 1)}
		create(ctx, settings, guestbooks[0], guestbooks[1])
		former := map[string]string{}
		reasons := map[string]<-chan string{}
		for _, guestbook := range guestbooks {
			expectReason(ctx, guestbook, webappv1.ReasonAvailable)
			former[guestbook.Name] = revisionOf(ctx, Default, guestbook)
			reasons[guestbook.Name] = watchReasons(ctx, guestbook)
		}

		// Without the quota, all pods could be replaced before the controller has looked at them.
		quota := forbid(ctx, "no-pods", corev1.ResourcePods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"},
			Spec:       podsOf(ctx, Default, guestbooks[0])[0].Spec,
		})
		changePage(ctx, settings, "Hello")
		for _, guestbook := range guestbooks {
			Eventually(reasons[guestbook.Name]).WithContext(ctx).WithTimeout(convergeTimeout).Should(Receive(Equal(webappv1.ReasonProgressing)),
				"Ready must be False while the pods are being replaced, see guestbooksWith in watches.go")
		}
		Expect(cluster.Client.Delete(ctx, quota)).To(Succeed())
		for _, guestbook := range guestbooks {
			expectReason(ctx, guestbook, webappv1.ReasonAvailable)
			revision := revisionOf(ctx, Default, guestbook)
			Expect(revision).NotTo(Equal(former[guestbook.Name]))
			Expect(podsOf(ctx, Default, guestbook)).To(And(
				HaveLen(int(guestbook.Spec.Size)), HaveEach(HaveField("Annotations", HaveKeyWithValue(revisionAnnotation, revision)))),
				"Ready must not be True until no pod with the old settings is left, see observedCondition in status.go")
		}
	}, SpecTimeout(specTimeout))

	It("cause no reconcile when only their labels and annotations change", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		tap := traffic.New()
		startManager(tap.Config(cluster.Config), testOptions(namespace))
		settings, guestbook := newSettings(namespace, "page-settings", "Welcome"), newGuestbook(namespace, "labelled", 1)
		create(ctx, settings, guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectEvents(ctx, guestbook, "Normal Available")
		reconciles := countReconcilesAtRest(ctx)
		before, revision := len(tap.Requests()), revisionOf(ctx, Default, guestbook)

		change := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"shop"},"annotations":{"note":"new"}}}`))
		Expect(cluster.Client.Patch(ctx, settings, change)).To(Succeed())
		consistently(ctx, func(g Gomega) {
			g.Expect(tap.Requests()[before:]).To(BeEmpty(), "see contentChanged in watches.go and digestOf in settings.go")
			g.Expect(countReconciles(g)).To(Equal(reconciles), "the watch of ConfigMaps needs the predicate contentChanged for updates, see SetupWithManager in watches.go")
			g.Expect(revisionOf(ctx, g, guestbook)).To(Equal(revision))
		})
	}, SpecTimeout(specTimeout))

	It("are awaited without retries while they are missing", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		tap := traffic.New()
		startManager(tap.Config(cluster.Config), testOptions(namespace))
		guestbook := newGuestbook(namespace, "waiting", 1)
		create(ctx, guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonConfigMapNotFound)
		Expect(meta.FindStatusCondition(guestbook.Status.Conditions, webappv1.ConditionReady).Message).To(ContainSubstring(`ConfigMap "page-settings" does not exist`))
		expectEvents(ctx, guestbook, "Warning ConfigMapNotFound")
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(guestbook), &appsv1.Deployment{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "pods without settings would never start, so the controller must not create a Deployment")

		requests, reconciles := len(tap.Requests()), countReconciles(Default)
		consistently(ctx, func(g Gomega) {
			g.Expect(tap.Requests()[requests:]).To(BeEmpty())
			// The watch event for the controller's own status write may cause one more reconcile.
			g.Expect(countReconciles(g)).To(BeNumerically("<=", reconciles+1), "the creation of the settings will cause a watch event, so the controller must not retry, see settingsDigest in children.go")
		})
		create(ctx, newSettings(namespace, "page-settings", "Welcome"))
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectEvents(ctx, guestbook, "Warning ConfigMapNotFound", "Normal Available")
	}, SpecTimeout(specTimeout))

	It("can be deleted, and the running pods stay", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		settings, guestbook := newSettings(namespace, "page-settings", "Welcome"), newGuestbook(namespace, "left", 2)
		create(ctx, settings, guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		names := named(guestbook)

		Expect(cluster.Client.Delete(ctx, settings)).To(Succeed())
		expectReason(ctx, guestbook, webappv1.ReasonConfigMapNotFound)
		create(ctx, newSettings(namespace, "page-settings", "Welcome"))
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		Expect(named(guestbook)).To(Equal(names), "the same content has the same revision, so no pod may be replaced")
		Expect(podsOf(ctx, Default, guestbook)).To(HaveEach(HaveField("Name", BeElementOf(names))))
		expectEvents(ctx, guestbook, "Normal Available", "Warning ConfigMapNotFound", "Normal Available")
	}, SpecTimeout(specTimeout))
})

// watchReasons returns a channel that receives the reason of the condition Ready: the current one, and then one after
// each change to the Guestbook.
func watchReasons(ctx context.Context, guestbook *webappv1.Guestbook) <-chan string {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	watch, err := watcher.Watch(ctx, &webappv1.GuestbookList{}, client.InNamespace(guestbook.Namespace), client.MatchingFields{"metadata.name": guestbook.Name})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(watch.Stop)
	reasons := make(chan string, 100)
	go func() {
		for event := range watch.ResultChan() {
			changed, isGuestbook := event.Object.(*webappv1.Guestbook)
			if !isGuestbook {
				continue
			}
			if ready := meta.FindStatusCondition(changed.Status.Conditions, webappv1.ConditionReady); ready != nil {
				reasons <- ready.Reason
			}
		}
	}()
	return reasons
}

// countReconciles returns how often managers in this process have called Reconcile.
func countReconciles(g Gomega) float64 {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	total := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			total += metric.GetCounter().GetValue()
		}
	}
	return total
}

// countReconcilesAtRest waits until Reconcile has not been called for a while, and returns how often it has been
// called.
func countReconcilesAtRest(ctx context.Context) float64 {
	GinkgoHelper()
	reconciles := -1.0
	Eventually(func(g Gomega) {
		last := reconciles
		reconciles = countReconciles(g)
		g.Expect(reconciles).To(Equal(last))
	}).WithContext(ctx).WithTimeout(convergeTimeout).WithPolling(quietTime).Should(Succeed())
	return reconciles
}

// newService returns an object with the name of the Guestbook's Service.
func newService(guestbook *webappv1.Guestbook) *corev1.Service {
	service := &corev1.Service{}
	service.Namespace, service.Name = guestbook.Namespace, guestbook.Name
	return service
}

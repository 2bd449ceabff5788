//workshop:given 3.3a

package controller_test

import (
	"context"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

var _ = Describe("the pods", func() {
	It("are listed in the order in which they become active", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		guestbook := newGuestbook(namespace, "ordered", 3)
		create(ctx, newSettings(namespace, "page-settings", "Welcome"), guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectPodsNamed(ctx, guestbook)
		active, standby := guestbook.Status.Active, guestbook.Status.Standby
		Expect(standby).To(HaveLen(2))
		waitForNextSecond(ctx, guestbook)

		Expect(cluster.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: active}})).To(Succeed())
		eventually(ctx, func(g Gomega) {
			readyCondition(ctx, g, guestbook)
			g.Expect(named(guestbook)).To(HaveLen(3))
			g.Expect(named(guestbook)).NotTo(ContainElement(active))
		})
		Expect(named(guestbook)[:2]).To(Equal(standby), "the next in line must become active, and the new pod must come last, see readyNames in pods.go")
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectPodsNamed(ctx, guestbook)
	}, SpecTimeout(specTimeout))

	It("lose their place in line if they were not ready for a while", func(ctx SpecContext) {
		if strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true") {
			Skip("a real kubelet decides itself which pods are ready")
		}
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		guestbook := newGuestbook(namespace, "flapping", 2)
		create(ctx, newSettings(namespace, "page-settings", "Welcome"), guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectPodsNamed(ctx, guestbook)
		eventually(ctx, func(g Gomega) { // from now on, the Deployment causes no events
			g.Expect(getDeployment(ctx, g, guestbook).Status.AvailableReplicas).To(BeEquivalentTo(2))
		})

		first, second := guestbook.Status.Active, guestbook.Status.Standby[0]
		pod := &corev1.Pod{}
		Expect(cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: first}, pod)).To(Succeed())
		change := client.MergeFrom(pod.DeepCopy())
		for i := range pod.Status.Conditions {
			pod.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(time.Minute))
		}
		Expect(cluster.Client.Status().Patch(ctx, pod, change)).To(Succeed())
		eventually(ctx, func(g Gomega) {
			readyCondition(ctx, g, guestbook)
			g.Expect(named(guestbook)).To(Equal([]string{second, first}), "only a watch event of the pod shows this change, see SetupWithManager in watches.go")
		})
	}, SpecTimeout(specTimeout))

	It("are as many as the scale subresource asks for, within bounds", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		guestbook := newGuestbook(namespace, "scaled", 1)
		create(ctx, newSettings(namespace, "page-settings", "Welcome"), guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		revision := revisionOf(ctx, Default, guestbook)

		Expect(scale(ctx, guestbook, 3)).To(Succeed())
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectPodsNamed(ctx, guestbook)
		found := &autoscalingv1.Scale{}
		Expect(cluster.Client.SubResource("scale").Get(ctx, guestbook, found)).To(Succeed())
		Expect(found.Spec.Replicas).To(BeEquivalentTo(3))
		Expect(found.Status.Replicas).To(BeEquivalentTo(3), "see newStatus in status.go")
		Expect(found.Status.Selector).To(Equal(guestbook.Status.Selector), "autoscalers find the pods by this selector")

		for _, refused := range []int32{0, 11} {
			err := scale(ctx, guestbook, refused)
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "a size of %d must be refused, found: %v", refused, err)
		}
		Expect(scale(ctx, guestbook, 2)).To(Succeed())
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectPodsNamed(ctx, guestbook)
		Expect(revisionOf(ctx, Default, guestbook)).To(Equal(revision), "scaling must not replace pods, see newRevision in deployment.go")
	}, SpecTimeout(specTimeout))
})

var _ = Describe("the watches", func() {
	It("drop updates of a pod that don't affect the status, but no update of a Guestbook", func(ctx SpecContext) {
		if strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true") {
			Skip("a real kubelet changes pods at any time")
		}
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		guestbook := newGuestbook(namespace, "watched", 1)
		create(ctx, newSettings(namespace, "page-settings", "Welcome"), guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectPodsNamed(ctx, guestbook)
		eventually(ctx, func(g Gomega) { // from now on, the Deployment causes no events
			g.Expect(getDeployment(ctx, g, guestbook).Status.AvailableReplicas).To(BeEquivalentTo(1))
		})
		reconciles := countReconcilesAtRest(ctx)

		note := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"note":"new"}}}`))
		Expect(cluster.Client.Patch(ctx, &podsOf(ctx, Default, guestbook)[0], note)).To(Succeed())
		consistently(ctx, func(g Gomega) {
			g.Expect(countReconciles(g)).To(Equal(reconciles), "the watch of pods needs the predicate readinessChanged for updates, see SetupWithManager in watches.go")
		})
		Expect(cluster.Client.Patch(ctx, guestbook, note)).To(Succeed())
		eventually(ctx, func(g Gomega) {
			g.Expect(countReconciles(g)).To(BeNumerically(">", reconciles), "For must have no predicate, so that every change of a Guestbook passes, see SetupWithManager in watches.go")
		})
	}, SpecTimeout(specTimeout))
})

var _ = Describe("the scale subresource", func() {
	It("counts the pods that exist, ready or not", func(ctx SpecContext) {
		if strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true") {
			Skip("a real kubelet decides itself which pods are ready")
		}
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		guestbook := newGuestbook(namespace, "counted", 2)
		create(ctx, newSettings(namespace, "page-settings", "Welcome"), guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)

		pod := &podsOf(ctx, Default, guestbook)[0]
		change := client.MergeFrom(pod.DeepCopy())
		for i := range pod.Status.Conditions {
			pod.Status.Conditions[i].Status = corev1.ConditionFalse
		}
		Expect(cluster.Client.Status().Patch(ctx, pod, change)).To(Succeed())
		expectReason(ctx, guestbook, webappv1.ReasonProgressing)
		eventually(ctx, func(g Gomega) {
			readyCondition(ctx, g, guestbook)
			g.Expect(guestbook.Status.ReadyReplicas).To(BeEquivalentTo(1))
		})
		found := &autoscalingv1.Scale{}
		Expect(cluster.Client.SubResource("scale").Get(ctx, guestbook, found)).To(Succeed())
		Expect(found.Status.Replicas).To(BeEquivalentTo(2), "autoscalers divide the load by this number, see the marker above Guestbook in guestbook_types.go")
	}, SpecTimeout(specTimeout))
})

func scale(ctx context.Context, guestbook *webappv1.Guestbook, size int32) error {
	wanted := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: size}}
	if err := cluster.Client.SubResource("scale").Update(ctx, guestbook.DeepCopy(), client.WithSubResourceBody(wanted)); err != nil {
		return err
	}
	return cluster.Client.Get(ctx, client.ObjectKeyFromObject(guestbook), guestbook)
}

// expectPodsNamed waits until the Guestbook has as many pods as its spec says, and the status names exactly these.
func expectPodsNamed(ctx context.Context, guestbook *webappv1.Guestbook) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		readyCondition(ctx, g, guestbook)
		var existing []string
		for _, pod := range podsOf(ctx, g, guestbook) {
			existing = append(existing, pod.Name)
		}
		g.Expect(existing).To(HaveLen(int(guestbook.Spec.Size)))
		g.Expect(named(guestbook)).To(ConsistOf(existing), "status.active and status.standby must name the pods, see newStatus in status.go")
		g.Expect(guestbook.Status.ReadyReplicas).To(Equal(guestbook.Spec.Size))
	})
}

// waitForNextSecond waits until the second in which the last pod became ready is over. The API records times in whole
// seconds, so pods that become ready from then on have a later time.
func waitForNextSecond(ctx context.Context, guestbook *webappv1.Guestbook) {
	GinkgoHelper()
	var last time.Time
	for _, pod := range podsOf(ctx, Default, guestbook) {
		for _, condition := range pod.Status.Conditions {
			if condition.LastTransitionTime.After(last) {
				last = condition.LastTransitionTime.Time
			}
		}
	}
	eventually(ctx, func(g Gomega) { g.Expect(time.Now()).To(BeTemporally(">=", last.Add(time.Second))) })
}

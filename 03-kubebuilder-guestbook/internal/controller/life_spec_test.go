//workshop:given 3.3a

package controller_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

var _ = Describe("a Guestbook", func() {
	It("is announced once, however often the manager starts", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		stop := startManager(cluster.Config, testOptions(namespace))
		guestbook := newGuestbook(namespace, "announced", 2)
		create(ctx, newSettings(namespace, "page-settings", "Welcome"), guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectEvents(ctx, guestbook, "Normal Available")

		stop()
		startManager(cluster.Config, testOptions(namespace))
		second := newGuestbook(namespace, "second", 1) // becomes ready only if the new manager works
		create(ctx, second)
		expectReason(ctx, second, webappv1.ReasonAvailable)
		expectEvents(ctx, second, "Normal Available")
		Expect(eventsOf(ctx, Default, guestbook)).To(ConsistOf("Normal Available"), "a restart must not emit the Event again, see announce in guestbook_controller.go")
	}, SpecTimeout(specTimeout))

	It("reports that its Deployment is refused, and gets one when the quota is gone", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		quota := forbid(ctx, "no-deployments", "count/deployments.apps", &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "probe"}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "probe"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe:1"}}},
				},
			},
		})
		guestbook := newGuestbook(namespace, "refused", 1)
		create(ctx, newSettings(namespace, "page-settings", "Welcome"), guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonRefused)
		Expect(readyCondition(ctx, Default, guestbook).Message).To(ContainSubstring("exceeded quota: no-deployments"), "users need the API server's message")
		expectEvents(ctx, guestbook, "Warning Refused")

		Expect(cluster.Client.Delete(ctx, quota)).To(Succeed())
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectEvents(ctx, guestbook, "Warning Refused", "Normal Available")
	}, SpecTimeout(specTimeout))

	It("leaves someone else's Service alone, and gets its own once that Service is gone", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		guestbook := newGuestbook(namespace, "taken", 1)
		conflicting := newService(guestbook)
		conflicting.Spec = corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "mail", Port: 25}}}
		create(ctx, conflicting, newSettings(namespace, "page-settings", "Welcome"), guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonServiceTaken)
		expectEvents(ctx, guestbook, "Warning ServiceTaken")
		eventually(ctx, func(g Gomega) { // after that, only the Service can cause a change
			g.Expect(getDeployment(ctx, g, guestbook).Status.AvailableReplicas).To(BeEquivalentTo(1))
			readyCondition(ctx, g, guestbook)
			g.Expect(named(guestbook)).To(HaveLen(1), "the status must name the pods, although no Service leads to them yet")
		})
		found := newService(guestbook)
		Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(found), found)).To(Succeed())
		Expect(found.ResourceVersion).To(Equal(conflicting.ResourceVersion), "the controller must not change someone else's Service, see findBlocker in children.go")

		Expect(cluster.Client.Delete(ctx, conflicting)).To(Succeed())
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectEvents(ctx, guestbook, "Warning ServiceTaken", "Normal Available")
	}, SpecTimeout(specTimeout))

	It("gets new children when it is recreated", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		former := newGuestbook(namespace, "again", 1)
		create(ctx, newSettings(namespace, "page-settings", "Welcome"), former)
		expectReason(ctx, former, webappv1.ReasonAvailable)
		formerPods := named(former)

		Expect(cluster.Client.Delete(ctx, former)).To(Succeed())
		guestbook := newGuestbook(namespace, "again", 1)
		create(ctx, guestbook)
		eventually(ctx, func(g Gomega) {
			g.Expect(metav1.IsControlledBy(getDeployment(ctx, g, guestbook), guestbook)).To(BeTrue(), "the new Guestbook must get a new Deployment, see findBlocker in children.go")
		})
		expectReason(ctx, guestbook, webappv1.ReasonAvailable)
		expectPodsNamed(ctx, guestbook)
		Expect(named(guestbook)).NotTo(ContainElement(BeElementOf(formerPods)))
		expectEvents(ctx, guestbook, "Normal Available")
	}, SpecTimeout(specTimeout))
})

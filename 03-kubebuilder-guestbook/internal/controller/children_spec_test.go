//workshop:given 3.3a

package controller_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

var _ = Describe("the children", func() {
	It("are created again when they, or what blocked them, have been deleted", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		guestbook := newGuestbook(namespace, "watched", 1)
		conflicting := newService(guestbook)
		conflicting.Spec = corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "mail", Port: 25}}}
		create(ctx, conflicting, newSettings(namespace, "page-settings", "Welcome"), guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonServiceTaken)

		deployment := getDeployment(ctx, Default, guestbook)
		Expect(cluster.Client.Delete(ctx, deployment)).To(Succeed())
		eventually(ctx, func(g Gomega) {
			recreated := getDeployment(ctx, g, guestbook)
			g.Expect(recreated.UID).NotTo(Equal(deployment.UID), "the Deployment must be created again, see SetupWithManager in watches.go")
			g.Expect(recreated.Status.AvailableReplicas).To(BeEquivalentTo(1)) // from now on no event of the Deployment follows
		})

		Expect(cluster.Client.Delete(ctx, conflicting)).To(Succeed())
		eventually(ctx, func(g Gomega) {
			service := newService(guestbook)
			g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(service), service)).To(Succeed(), "the name is free, so the Service must be created, see SetupWithManager in watches.go")
			g.Expect(metav1.IsControlledBy(service, guestbook)).To(BeTrue())
		})
	}, SpecTimeout(specTimeout))
})

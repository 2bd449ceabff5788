//workshop:given 3.3a

package controller_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

var _ = Describe("the children", func() {
	It("are created again after they, or the objects that blocked them, have been deleted", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		guestbook := newGuestbook(namespace, "watched", 1)
		conflicting := newService(guestbook)
		conflicting.Spec = corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "mail", Port: 25}}}
		create(ctx, conflicting, newSettings(namespace, "page-settings", "Welcome"), guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonServiceTaken)
		var deployment *appsv1.Deployment
		eventually(ctx, func(g Gomega) {
			deployment = getDeployment(ctx, g, guestbook)
			g.Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(1))
		})
		countReconcilesAtRest(ctx) // from now on, only the deletions below can queue the Guestbook

		Expect(cluster.Client.Delete(ctx, conflicting)).To(Succeed())
		service := expectService(ctx, guestbook, conflicting.UID)
		Expect(cluster.Client.Delete(ctx, service)).To(Succeed())
		expectService(ctx, guestbook, service.UID)

		countReconcilesAtRest(ctx)
		Expect(cluster.Client.Delete(ctx, deployment, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed(), "the pods must stay, so that they cause no event")
		eventually(ctx, func(g Gomega) {
			g.Expect(getDeployment(ctx, g, guestbook).UID).NotTo(Equal(deployment.UID), "the Deployment must be created again, see SetupWithManager in watches.go")
		})
	}, SpecTimeout(specTimeout))
})

// expectService waits until the Guestbook has a new Service in place of the deleted one.
func expectService(ctx context.Context, guestbook *webappv1.Guestbook, deleted types.UID) *corev1.Service {
	GinkgoHelper()
	service := newService(guestbook)
	eventually(ctx, func(g Gomega) {
		g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(service), service)).To(Succeed(), "the Service must be created, see SetupWithManager in watches.go")
		g.Expect(service.UID).NotTo(Equal(deleted))
		g.Expect(metav1.IsControlledBy(service, guestbook)).To(BeTrue())
	})
	return service
}

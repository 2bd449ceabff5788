//workshop:given 3.3a

package controller_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

var _ = Describe("the children", func() {
	It("are corrected as soon as someone changes the Deployment", func(ctx SpecContext) {
		expectCorrected(ctx, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	}, SpecTimeout(specTimeout))

	It("are corrected as soon as someone changes the Service", func(ctx SpecContext) {
		expectCorrected(ctx, corev1.SchemeGroupVersion.WithKind("Service"))
	}, SpecTimeout(specTimeout))

	It("are created as soon as an object that has their name, but belongs to another Guestbook, has been deleted", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		other, guestbook := newGuestbook(namespace, "other", 1), newGuestbook(namespace, "watched", 1)
		create(ctx, newSettings(namespace, "page-settings", "Welcome"), other)
		conflicting := newService(guestbook)
		conflicting.Spec = corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "mail", Port: 25}}}
		Expect(ctrl.SetControllerReference(other, conflicting, scheme)).To(Succeed())
		create(ctx, conflicting, guestbook)
		expectReason(ctx, guestbook, webappv1.ReasonServiceTaken)
		eventually(ctx, func(g Gomega) {
			g.Expect(getDeployment(ctx, g, guestbook).Status.AvailableReplicas).To(BeEquivalentTo(1))
		})
		countReconcilesAtRest(ctx) // from now on, only the deletion below can queue the Guestbook

		Expect(cluster.Client.Delete(ctx, conflicting)).To(Succeed())
		expectService(ctx, guestbook, conflicting.UID)
	}, SpecTimeout(specTimeout))

	It("are created after they, or the objects that blocked them, have been deleted", func(ctx SpecContext) {
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

// expectCorrected removes a label from a Guestbook's child, and waits until the label is back. This changes no pod, so
// only the child's own watch event can queue the Guestbook.
func expectCorrected(ctx context.Context, kind schema.GroupVersionKind) {
	GinkgoHelper()
	namespace := cluster.Namespace(ctx)
	startManager(cluster.Config, testOptions(namespace))
	guestbook := newGuestbook(namespace, "changed", 1)
	create(ctx, newSettings(namespace, "page-settings", "Welcome"), guestbook)
	getChild := func(g Gomega) *metav1.PartialObjectMetadata {
		child := &metav1.PartialObjectMetadata{}
		child.SetGroupVersionKind(kind)
		g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(guestbook), child)).To(Succeed(), "the %s must be created, see applyChildren in children.go", kind.Kind)
		return child
	}
	eventually(ctx, func(g Gomega) { getChild(g) })
	countReconcilesAtRest(ctx) // from now on, only the change below can queue the Guestbook

	change := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`))
	Expect(cluster.Client.Patch(ctx, getChild(Default), change)).To(Succeed())
	eventually(ctx, func(g Gomega) {
		g.Expect(getChild(g).Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "guestbook-controller"),
			"the %s lost a label, and that event must queue the Guestbook, see SetupWithManager in watches.go and patch in children.go", kind.Kind)
	})
}

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

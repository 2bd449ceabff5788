package controller_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

var _ = Describe("a Memcached", func() {
	It("has as many pods as the scale subresource asks for, within bounds", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "scaled", 1)
		create(ctx, memcached)
		expectConditions(ctx, memcached, converged)
		revision, first := revisionOf(ctx, Default, memcached), memcached.Status.Nodes
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: nameOf(memcached)}
		Expect(exists(ctx, Default, budget)).To(BeFalse(), "a budget with maxUnavailable: 1 has no effect on a single pod, so there must be none")

		Expect(scale(ctx, memcached, 3)).To(Succeed())
		expectConditions(ctx, memcached, converged)
		Expect(memcached.Status.Nodes).To(And(HaveLen(3), ContainElements(first)))
		Expect(exists(ctx, Default, budget)).To(BeTrue(), "see applyChildren in children.go")
		found := &autoscalingv1.Scale{}
		Expect(cluster.Client.SubResource("scale").Get(ctx, memcached, found)).To(Succeed())
		Expect(found.Spec.Replicas).To(BeEquivalentTo(3))
		Expect(found.Status.Replicas).To(BeEquivalentTo(3), "see newStatus in status.go")
		Expect(found.Status.Selector).To(Equal(memcached.Status.Selector), "an autoscaler finds the pods by this selector")

		for _, refused := range []int32{0, 6} {
			err := scale(ctx, memcached, refused)
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "a size of %d must be refused, found: %v", refused, err)
		}
		Expect(scale(ctx, memcached, 1)).To(Succeed())
		expectConditions(ctx, memcached, converged)
		Expect(memcached.Status.Nodes).To(HaveLen(1))
		expectGone(ctx, budget) // see removeBudget in children.go
		Expect(revisionOf(ctx, Default, memcached)).To(Equal(revision), "another size is no reason to replace pods, see newRevision in desired.go")
	}, SpecTimeout(specTimeout))

	It("leaves someone else's Service alone, and recovers when that Service is deleted", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "taken", 1)
		conflicting := &corev1.Service{ObjectMeta: nameOf(memcached), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "mail", Port: 25}}}}
		create(ctx, conflicting, memcached)
		expectConditions(ctx, memcached, broken("False NameTaken", "NameTaken"))
		Expect(problemOf(memcached)).To(ContainSubstring(`Service "taken" exists and is not managed by this Memcached`))
		eventually(ctx, func(g Gomega) {
			g.Expect(conditionsOf(ctx, g, memcached)).To(Equal(broken("False NameTaken", "NameTaken")), "clients would find the other Service")
			g.Expect(memcached.Status.Nodes).To(HaveLen(1), "the status must name the pod, although no client finds it yet")
		})
		expectUntouched(ctx, conflicting)

		Expect(cluster.Client.Delete(ctx, conflicting)).To(Succeed())
		expectConditions(ctx, memcached, converged)
		expectEvents(ctx, memcached, "Warning NameTaken", "Normal EnoughPods")
	}, SpecTimeout(specTimeout))

	It("recovers when a Service that has its name, but belongs to another Memcached, is deleted", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		other, memcached := newMemcached(namespace, "other", 1), newMemcached(namespace, "taken", 1)
		create(ctx, other)
		conflicting := &corev1.Service{ObjectMeta: nameOf(memcached), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "mail", Port: 25}}}}
		Expect(ctrl.SetControllerReference(other, conflicting, scheme)).To(Succeed())
		create(ctx, conflicting, memcached)
		expectConditions(ctx, memcached, broken("False NameTaken", "NameTaken"))
		eventually(ctx, func(g Gomega) {
			g.Expect(conditionsOf(ctx, g, memcached)).To(Equal(broken("False NameTaken", "NameTaken")))
			g.Expect(memcached.Status.Nodes).To(HaveLen(1))
			g.Expect(getDeployment(ctx, g, memcached).Status.AvailableReplicas).To(BeEquivalentTo(1))
		})
		// Once all events of the rollout have arrived, only the deletion of the Service can queue the Memcached.
		consistently(ctx, func(g Gomega) {
			g.Expect(conditionsOf(ctx, g, memcached)).To(Equal(broken("False NameTaken", "NameTaken")))
		})
		expectUntouched(ctx, conflicting)

		Expect(cluster.Client.Delete(ctx, conflicting)).To(Succeed())
		expectConditions(ctx, memcached, converged) // see uncontrolled in watches.go
	}, SpecTimeout(specTimeout))

	It("is blocked by someone else's budget only while it needs one itself", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "budgeted", 1)
		conflicting := &policyv1.PodDisruptionBudget{ObjectMeta: nameOf(memcached), Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(9)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}},
		}}
		create(ctx, conflicting, memcached)
		expectConditions(ctx, memcached, converged)
		expectUntouched(ctx, conflicting) // see removeBudget in children.go

		Expect(scale(ctx, memcached, 2)).To(Succeed())
		expectConditions(ctx, memcached, broken("False NameTaken", "NameTaken"))
		expectUntouched(ctx, conflicting)
		Expect(scale(ctx, memcached, 1)).To(Succeed())
		expectConditions(ctx, memcached, converged)
		Expect(scale(ctx, memcached, 2)).To(Succeed())
		expectConditions(ctx, memcached, broken("False NameTaken", "NameTaken"))
		Expect(cluster.Client.Delete(ctx, conflicting)).To(Succeed())
		expectConditions(ctx, memcached, converged)
		Expect(exists(ctx, Default, &policyv1.PodDisruptionBudget{ObjectMeta: nameOf(memcached)})).To(BeTrue())
	}, SpecTimeout(specTimeout))

	It("uses the operator's image if its spec names none, and follows a new default", func(ctx SpecContext) {
		needSimulatedPods() // these images do not exist
		namespace := cluster.Namespace(ctx)
		stop := startManager(cluster.Config, testOptions(namespace))
		following, choosy := newMemcached(namespace, "following", 1), newMemcached(namespace, "choosy", 1)
		choosy.Spec.Image = "registry.test/choice:1"
		create(ctx, following, choosy)
		expectConditions(ctx, following, converged)
		expectConditions(ctx, choosy, converged)
		expectEvents(ctx, choosy, "Normal EnoughPods")
		chosen := choosy.Status.Nodes

		stop()
		Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(choosy), choosy)).To(Succeed())
		version := choosy.ResourceVersion
		startManagerWith("registry.test/memcached:2", cluster.Config, testOptions(namespace))
		eventually(ctx, func(g Gomega) {
			g.Expect(podsOf(ctx, g, following)).To(And(HaveLen(1), HaveEach(HaveField("Spec.Containers", ConsistOf(HaveField("Image", "registry.test/memcached:2"))))),
				"see imageOf in children.go")
		})
		expectConditions(ctx, following, converged)
		expectConditions(ctx, choosy, converged)
		Expect(choosy.Status.Nodes).To(Equal(chosen), "an image in the spec must not be overridden")
		Expect(choosy.ResourceVersion).To(Equal(version), "restarting the operator must not change the Memcached")
		Expect(eventsOf(ctx, Default, choosy)).To(ConsistOf("Normal EnoughPods"), "restarting the operator must emit no Event, see announce in memcached_controller.go")
	}, SpecTimeout(specTimeout))
})

func scale(ctx context.Context, memcached *cachev1alpha1.Memcached, size int32) error {
	wanted := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: size}}
	return cluster.Client.SubResource("scale").Update(ctx, memcached.DeepCopy(), client.WithSubResourceBody(wanted))
}

// expectUntouched checks that someone else's object still exists, with the same generation, labels and owners.
func expectUntouched(ctx context.Context, object client.Object) {
	GinkgoHelper()
	found := object.DeepCopyObject().(client.Object)
	Expect(exists(ctx, Default, found)).To(BeTrue(), "someone else's object must stay")
	Expect(found.GetUID()).To(Equal(object.GetUID()))
	Expect(found.GetGeneration()).To(Equal(object.GetGeneration()), "see findBlocker in children.go")
	Expect(found.GetLabels()).To(Equal(object.GetLabels()))
	Expect(found.GetOwnerReferences()).To(Equal(object.GetOwnerReferences()))
	Expect(found.GetDeletionTimestamp()).To(BeNil())
}

package controller_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
	"example.com/operator-workshop/operatortest/traffic"
)

// holdFinalizer keeps a deleted object until the spec removes the finalizer.
const holdFinalizer = "test.example.com/hold"

var _ = Describe("a deleted Memcached", func() {
	It("exists until its last pod is gone, and announces it", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		tap := traffic.New()
		startManager(tap.Config(cluster.Config), testOptions(namespace))
		memcached := newMemcached(namespace, "held", 2)
		create(ctx, memcached)
		expectConditions(ctx, memcached, converged)
		pods := podsOf(ctx, Default, memcached)
		patch(ctx, &pods[0], `{"metadata":{"finalizers":[%q]}}`, holdFinalizer)
		before := len(tap.Requests())

		Expect(cluster.Client.Delete(ctx, memcached)).To(Succeed())
		expectGone(ctx, &pods[1])
		expectEvents(ctx, memcached, "Normal EnoughPods", "Normal Stopping")
		Expect(cluster.Client.Delete(ctx, memcached)).To(Succeed(), "a second delete must change nothing")
		patch(ctx, memcached, `{"metadata":{"annotations":{"note":"still here"}}}`)
		consistently(ctx, func(g Gomega) {
			g.Expect(exists(ctx, g, memcached)).To(BeTrue(), "the Memcached must exist until its last pod has ended, see finalize in finalizer.go")
			g.Expect(getDeployment(ctx, g, memcached).DeletionTimestamp).NotTo(BeNil())
		})

		patch(ctx, &pods[0], `{"metadata":{"finalizers":null}}`)
		expectGone(ctx, memcached)
		Expect(exists(ctx, Default, &pods[0])).To(BeFalse())
		Expect(exists(ctx, Default, &appsv1.Deployment{ObjectMeta: nameOf(memcached)})).To(BeFalse())
		expectEvents(ctx, memcached, "Normal EnoughPods", "Normal Stopping", "Normal Stopped")
		Expect(writesSince(tap, before)).To(Equal([]string{"delete deployments.apps", "patch memcacheds.cache.example.com"}), "the finalizer must be removed last, and nothing recreated")
		expectGone(ctx, &corev1.Service{ObjectMeta: nameOf(memcached)})
		expectGone(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: nameOf(memcached)})
	}, SpecTimeout(specTimeout))

	It("exists until its last pod is gone even if it is deleted in the foreground", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "foreground", 1)
		create(ctx, memcached)
		expectConditions(ctx, memcached, converged)
		pod := &podsOf(ctx, Default, memcached)[0]
		patch(ctx, pod, `{"metadata":{"finalizers":[%q]}}`, holdFinalizer)

		Expect(cluster.Client.Delete(ctx, memcached, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		eventually(ctx, func(g Gomega) {
			g.Expect(exists(ctx, g, pod)).To(BeTrue())
			g.Expect(pod.DeletionTimestamp).NotTo(BeNil())
		})
		consistently(ctx, func(g Gomega) {
			g.Expect(exists(ctx, g, memcached)).To(BeTrue(), "the Memcached must exist until its last pod has ended, see finalize in finalizer.go")
		})
		patch(ctx, pod, `{"metadata":{"finalizers":null}}`)
		expectGone(ctx, memcached)
	}, SpecTimeout(specTimeout))

	It("exists until its last pod is gone even if someone else has deleted the Deployment", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		stop := startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "headless", 1)
		create(ctx, memcached)
		expectConditions(ctx, memcached, converged)
		pod := &podsOf(ctx, Default, memcached)[0]
		patch(ctx, pod, `{"metadata":{"finalizers":[%q]}}`, holdFinalizer)

		stop()
		deployment := getDeployment(ctx, Default, memcached)
		Expect(cluster.Client.Delete(ctx, deployment)).To(Succeed())
		expectGone(ctx, deployment)
		Expect(cluster.Client.Delete(ctx, memcached)).To(Succeed())
		startManager(cluster.Config, testOptions(namespace))
		consistently(ctx, func(g Gomega) {
			g.Expect(exists(ctx, g, memcached)).To(BeTrue(), "the Memcached must exist until its last pod has ended, see finalize in finalizer.go")
		})
		patch(ctx, pod, `{"metadata":{"finalizers":null}}`)
		expectGone(ctx, memcached)
		expectEvents(ctx, memcached, "Normal EnoughPods", "Normal Stopped")
	}, SpecTimeout(specTimeout))

	It("exists until its last pod is gone even if no operator was running when it was deleted", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		memcached := newMemcached(namespace, "unattended", 1)
		memcached.Finalizers = []string{cachev1alpha1.Finalizer}
		create(ctx, memcached)
		deployment := newConflicting(memcached)
		deployment.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(memcached, cachev1alpha1.SchemeGroupVersion.WithKind("Memcached"))}
		create(ctx, deployment)
		var pods []corev1.Pod
		eventually(ctx, func(g Gomega) {
			pods = podsOf(ctx, g, memcached)
			g.Expect(pods).To(HaveLen(1))
		})
		patch(ctx, &pods[0], `{"metadata":{"finalizers":[%q]}}`, holdFinalizer)
		Expect(cluster.Client.Delete(ctx, memcached)).To(Succeed())

		startManager(cluster.Config, testOptions(namespace))
		eventually(ctx, func(g Gomega) {
			begun := !exists(ctx, g, memcached) || !exists(ctx, g, deployment) || deployment.DeletionTimestamp != nil
			g.Expect(begun).To(BeTrue(), "the Deployment must be deleted, see endPods in finalizer.go")
		})
		consistently(ctx, func(g Gomega) {
			g.Expect(exists(ctx, g, memcached)).To(BeTrue(), "the Memcached is gone, but its pod %s is not: clients can still reach it, see finalize in finalizer.go", pods[0].Name)
			g.Expect(exists(ctx, g, deployment)).To(BeTrue(), "the Deployment is gone, but its pod is not: delete the Deployment in the foreground, see deleteDeployment in finalizer.go")
		})
		patch(ctx, &pods[0], `{"metadata":{"finalizers":null}}`)
		expectGone(ctx, memcached)
		expectEvents(ctx, memcached, "Normal Stopping", "Normal Stopped")
	}, SpecTimeout(specTimeout))

	It("leaves its pods alone if its deletion orphans its dependents", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "orphaning", 1)
		create(ctx, memcached)
		expectConditions(ctx, memcached, converged)
		deployment, pod := getDeployment(ctx, Default, memcached), podsOf(ctx, Default, memcached)[0]

		Expect(cluster.Client.Delete(ctx, memcached, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		expectGone(ctx, memcached)
		consistently(ctx, func(g Gomega) {
			left := getDeployment(ctx, g, memcached)
			g.Expect(left.UID).To(Equal(deployment.UID))
			g.Expect(left.DeletionTimestamp).To(BeNil(), "see finalize in finalizer.go")
			g.Expect(left.OwnerReferences).To(BeEmpty())
			g.Expect(exists(ctx, g, &pod)).To(BeTrue())
			g.Expect(pod.DeletionTimestamp).To(BeNil())
		})
		expectEvents(ctx, memcached, "Normal EnoughPods", "Normal Stopped")
	}, SpecTimeout(specTimeout))

	It("is gone immediately if nothing was created for it yet", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		memcached := newMemcached(namespace, "early", 1)
		memcached.Finalizers = []string{cachev1alpha1.Finalizer}
		create(ctx, memcached)
		Expect(cluster.Client.Delete(ctx, memcached)).To(Succeed())
		tap := traffic.New()
		startManager(tap.Config(cluster.Config), testOptions(namespace))
		expectGone(ctx, memcached)
		expectEvents(ctx, memcached, "Normal Stopped")
		Expect(writesSince(tap, 0)).To(Equal([]string{"patch memcacheds.cache.example.com"}), "a Memcached that is being deleted must get no children")
	}, SpecTimeout(specTimeout))

	It("gets no new finalizer", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		memcached := newMemcached(namespace, "late", 1)
		memcached.Finalizers = []string{holdFinalizer}
		create(ctx, memcached)
		Expect(cluster.Client.Delete(ctx, memcached)).To(Succeed())
		tap := traffic.New()
		startManager(tap.Config(cluster.Config), testOptions(namespace))
		witness := newMemcached(namespace, "witness", 1) // shows that the manager is working
		create(ctx, witness)
		expectConditions(ctx, witness, converged)
		for _, request := range tap.Requests() {
			Expect(request.IsWrite() && request.Name == memcached.Name).To(BeFalse(), "the check for the deletion must come first, see reconcile in memcached_controller.go: %s", request)
		}
		releaseHold(ctx, memcached)
	}, SpecTimeout(specTimeout))

	It("leaves someone else's Deployment and its pods alone", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "taken", 1)
		conflicting := newConflicting(memcached)
		create(ctx, conflicting, memcached)
		expectConditions(ctx, memcached, broken("False NameTaken", "NameTaken"))
		var pods []corev1.Pod
		eventually(ctx, func(g Gomega) {
			pods = podsOf(ctx, g, memcached)
			g.Expect(pods).To(HaveLen(1))
		})
		Expect(cluster.Client.Delete(ctx, memcached)).To(Succeed())
		expectGone(ctx, memcached)
		expectEvents(ctx, memcached, "Warning NameTaken", "Normal Stopped")
		expectUntouched(ctx, conflicting) // see ownDeployment in children.go
		expectUntouched(ctx, &pods[0])
	}, SpecTimeout(specTimeout))

	It("that another finalizer holds gets no new children", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		tap := traffic.New()
		startManager(tap.Config(cluster.Config), testOptions(namespace))
		memcached := newMemcached(namespace, "shared", 2)
		memcached.Finalizers = []string{holdFinalizer}
		create(ctx, memcached)
		expectConditions(ctx, memcached, converged)
		Expect(memcached.Finalizers).To(ConsistOf(holdFinalizer, cachev1alpha1.Finalizer), "see patchFinalizers in finalizer.go")

		Expect(cluster.Client.Delete(ctx, memcached)).To(Succeed())
		eventually(ctx, func(g Gomega) {
			g.Expect(exists(ctx, g, memcached)).To(BeTrue())
			g.Expect(memcached.Finalizers).To(ConsistOf(holdFinalizer), "our finalizer must be removed, and the other one must stay")
		})
		expectEvents(ctx, memcached, "Normal EnoughPods", "Normal Stopping", "Normal Stopped")
		before := len(tap.Requests())
		Expect(cluster.Client.Delete(ctx, &corev1.Service{ObjectMeta: nameOf(memcached)})).To(Succeed())
		patch(ctx, memcached, `{"spec":{"size":3}}`)
		consistently(ctx, func(g Gomega) {
			g.Expect(tap.Requests()[before:]).To(BeEmpty(), "the operator is done: it must create and report nothing")
		})
		releaseHold(ctx, memcached)
	}, SpecTimeout(specTimeout))

	It("may be created again under the same name", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		former := newMemcached(namespace, "again", 2)
		create(ctx, former)
		expectConditions(ctx, former, converged)
		service := &corev1.Service{ObjectMeta: nameOf(former)}
		patch(ctx, service, `{"metadata":{"finalizers":[%q]}}`, holdFinalizer)
		Expect(cluster.Client.Delete(ctx, former)).To(Succeed())
		expectGone(ctx, former)

		memcached := newMemcached(namespace, "again", 2)
		create(ctx, memcached)
		expectConditions(ctx, memcached, rolling) // while the old Service is being deleted
		patch(ctx, service, `{"metadata":{"finalizers":null}}`)
		expectConditions(ctx, memcached, converged)
		for _, child := range []client.Object{
			&appsv1.Deployment{ObjectMeta: nameOf(memcached)}, &corev1.Service{ObjectMeta: nameOf(memcached)}, &policyv1.PodDisruptionBudget{ObjectMeta: nameOf(memcached)},
		} {
			Expect(exists(ctx, Default, child)).To(BeTrue(), "%T", child)
			Expect(metav1.IsControlledBy(child, memcached)).To(BeTrue(), "the old %T must be deleted and a new one created, see findBlocker in children.go", child)
		}
		Expect(memcached.Status.Nodes).NotTo(ContainElement(BeElementOf(former.Status.Nodes)))
		expectEvents(ctx, memcached, "Normal EnoughPods")
	}, SpecTimeout(specTimeout))
})

// writesSince describes each successful write from the given index on, for example as "create services". It leaves out
// Events.
func writesSince(tap *traffic.Tap, index int) []string {
	var writes []string
	for _, request := range tap.Requests()[index:] {
		if request.IsWrite() && !request.IsEvent() && request.Status < 300 {
			writes = append(writes, request.Kind())
		}
	}
	return writes
}

// releaseHold removes all of the Memcached's finalizers, and waits until the Memcached is gone.
func releaseHold(ctx context.Context, memcached *cachev1alpha1.Memcached) {
	GinkgoHelper()
	patch(ctx, memcached, `{"metadata":{"finalizers":null}}`)
	expectGone(ctx, memcached)
}

// newConflicting returns a Deployment like one that kubectl delete --cascade=orphan has left behind: its pods have the
// Memcached's labels, but the Memcached does not control it.
func newConflicting(memcached *cachev1alpha1.Memcached) *appsv1.Deployment {
	labels := map[string]string{
		"app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": memcached.Name, "app.kubernetes.io/managed-by": "memcached-operator",
	}
	return &appsv1.Deployment{
		ObjectMeta: nameOf(memcached),
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: "other:1"}}},
			},
		},
	}
}

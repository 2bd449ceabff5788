package controller_test

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

var _ = Describe("the conditions", func() {
	It("follow pods that start slowly", func(ctx SpecContext) {
		needSimulatedPods()
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "slow", 2)
		memcached.Spec.Image = startingImage
		create(ctx, memcached)
		expectConditions(ctx, memcached, starting)
		pods := waitForPods(ctx, memcached, 2)

		setReady(ctx, &pods[0], true)
		eventually(ctx, func(g Gomega) {
			g.Expect(conditionsOf(ctx, g, memcached)).To(Equal(starting), "one ready pod of two is too few")
			g.Expect(memcached.Status.Nodes).To(Equal([]string{pods[0].Name}))
			g.Expect(memcached.Status.ReadyReplicas).To(BeEquivalentTo(1))
			found := &autoscalingv1.Scale{}
			g.Expect(cluster.Client.SubResource("scale").Get(ctx, memcached, found)).To(Succeed())
			g.Expect(found.Status.Replicas).To(BeEquivalentTo(2), "an autoscaler counts the pods that exist, ready or not")
		})
		setReady(ctx, &pods[1], true)
		expectConditions(ctx, memcached, converged)
		Expect(memcached.Status.Nodes).To(ConsistOf(pods[0].Name, pods[1].Name))
		expectEvents(ctx, memcached, "Normal EnoughPods")
	}, SpecTimeout(specTimeout))

	It("tolerate one missing pod of four, but not two", func(ctx SpecContext) {
		needSimulatedPods()
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "four", 4)
		create(ctx, memcached)
		expectConditions(ctx, memcached, converged)
		pods := waitForPods(ctx, memcached, 4)

		for _, step := range []struct {
			pod   int
			ready bool
			want  conditions
		}{{0, false, rolling}, {1, false, starting}, {0, true, rolling}, {1, true, converged}} {
			setReady(ctx, &pods[step.pod], step.ready)
			expectConditions(ctx, memcached, step.want)
		}
		Expect(podsOf(ctx, Default, memcached)).To(HaveEach(HaveField("Name", BeElementOf(memcached.Status.Nodes))), "no pod may be replaced")
		expectEvents(ctx, memcached, "Normal EnoughPods", "Normal EnoughPods")
	}, SpecTimeout(specTimeout))

	It("report a container that keeps crashing, but not each crash", func(ctx SpecContext) {
		needSimulatedPods()
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "crashing", 1)
		memcached.Spec.Image = "registry.test/waiting:CrashLoopBackOff"
		create(ctx, memcached)
		expectConditions(ctx, memcached, broken("False TooFewPods", "PodsFailing"))
		Expect(problemOf(memcached)).To(Equal("a pod can't run: its container keeps crashing"))

		pod := &waitForPods(ctx, memcached, 1)[0]
		setReady(ctx, pod, true)
		expectConditions(ctx, memcached, converged)
		setWaiting(ctx, pod, "CrashLoopBackOff")
		expectConditions(ctx, memcached, broken("False TooFewPods", "PodsFailing"))
		reported := memcached.ResourceVersion
		setCrashed(ctx, pod, time.Now())
		consistently(ctx, func(g Gomega) {
			conditionsOf(ctx, g, memcached)
			g.Expect(memcached.ResourceVersion).To(Equal(reported), "running again is not a recovery, see failureOf in pods.go")
		})
		setWaiting(ctx, pod, "RunContainerError")
		eventually(ctx, func(g Gomega) {
			conditionsOf(ctx, g, memcached)
			g.Expect(problemOf(memcached)).To(Equal("a pod can't run: its container can't be started"))
		})
		setReady(ctx, pod, true)
		expectConditions(ctx, memcached, converged)
		expectEvents(ctx, memcached, "Warning PodsFailing", "Normal EnoughPods", "Warning PodsFailing", "Normal EnoughPods")
	}, SpecTimeout(specTimeout))

	It("forgive a container that crashed long ago", func(ctx SpecContext) {
		needSimulatedPods()
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "veteran", 1)
		create(ctx, memcached)
		expectConditions(ctx, memcached, converged)

		pod := &waitForPods(ctx, memcached, 1)[0]
		setCrashed(ctx, pod, time.Now().Add(-30*24*time.Hour))
		expectConditions(ctx, memcached, starting)
		setReady(ctx, pod, true)
		expectConditions(ctx, memcached, converged)
		expectEvents(ctx, memcached, "Normal EnoughPods", "Normal EnoughPods")
	}, SpecTimeout(specTimeout))

	It("report an image that can't be pulled while the old pods serve", func(ctx SpecContext) {
		needSimulatedPods()
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "unpullable", 2)
		create(ctx, memcached)
		expectConditions(ctx, memcached, converged)
		former, versions := memcached.Status.Nodes, watchVersions(ctx, memcached)

		patch(ctx, memcached, `{"spec":{"image":"registry.test/waiting:ErrImagePull"}}`)
		expectConditions(ctx, memcached, broken("True EnoughPods", "PodsFailing"))
		Expect(problemOf(memcached)).To(Equal("a pod can't run: its image can't be pulled"))
		Expect(memcached.Status.Nodes).To(Equal(former), "with two replicas, a Deployment removes no old pod before a new one is ready")
		reported := memcached.ResourceVersion
		pods := waitForPods(ctx, memcached, 3)
		for i := range pods {
			if pods[i].Spec.Containers[0].Image == memcached.Spec.Image {
				setWaiting(ctx, &pods[i], "ImagePullBackOff")
			}
		}
		consistently(ctx, func(g Gomega) {
			conditionsOf(ctx, g, memcached)
			g.Expect(memcached.ResourceVersion).To(Equal(reported), "the kubelet's reasons alternate, but our message must not, see failures in pods.go")
		})

		patch(ctx, memcached, `{"spec":{"image":null}}`)
		expectConditions(ctx, memcached, converged)
		Expect(memcached.Status.Nodes).To(Equal(former), "the old revision is desired again, and its pods still exist")
		for _, version := range versionsUpTo(ctx, versions, memcached) {
			Expect(summarize(version).available).To(Equal("True EnoughPods"), "clients must be served throughout")
		}
		expectEvents(ctx, memcached, "Normal EnoughPods", "Warning PodsFailing")
	}, SpecTimeout(specTimeout))

	It("report a Deployment that takes too long", func(ctx SpecContext) {
		needSimulatedPods()
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "late", 1)
		memcached.Spec.Image = startingImage
		create(ctx, memcached)
		expectConditions(ctx, memcached, starting)
		patch(ctx, getDeployment(ctx, Default, memcached), `{"spec":{"progressDeadlineSeconds":1}}`)
		expectConditions(ctx, memcached, broken("False TooFewPods", "Stalled"))
		Expect(problemOf(memcached)).To(ContainSubstring("has timed out progressing"), "users need the Deployment's message")

		setReady(ctx, &waitForPods(ctx, memcached, 1)[0], true)
		expectConditions(ctx, memcached, converged)
		expectEvents(ctx, memcached, "Warning Stalled", "Normal EnoughPods")
	}, SpecTimeout(specTimeout))

	It("report pods that fit on no node when the size grows", func(ctx SpecContext) {
		needSimulatedPods()
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		memcached := newMemcached(namespace, "crowded", 1)
		create(ctx, memcached)
		expectConditions(ctx, memcached, converged)
		// With this anti-affinity, the two simulated nodes have room for only two of the Memcached's pods.
		patch(ctx, getDeployment(ctx, Default, memcached), `{"spec":{"template":{"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
			{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app.kubernetes.io/instance":"crowded"}}}]}}}}}}`)
		eventually(ctx, func(g Gomega) {
			g.Expect(getDeployment(ctx, g, memcached).Status).To(And(HaveField("ObservedGeneration", BeNumerically(">=", 2)), HaveField("UpdatedReplicas", BeEquivalentTo(1)), HaveField("Replicas", BeEquivalentTo(1))))
		})
		expectConditions(ctx, memcached, converged)

		patch(ctx, memcached, `{"spec":{"size":3}}`)
		var pending []corev1.Pod
		eventually(ctx, func(g Gomega) {
			pending = slices.DeleteFunc(podsOf(ctx, g, memcached), func(pod corev1.Pod) bool { return pod.Spec.NodeName != "" })
			g.Expect(pending).To(ConsistOf(HaveField("Status.Conditions", ContainElement(HaveField("Reason", corev1.PodReasonUnschedulable)))))
		})
		expectConditions(ctx, memcached, starting)
		Expect(getDeployment(ctx, Default, memcached).Status.Conditions).To(ContainElement(HaveField("Reason", "NewReplicaSetAvailable")), "the Deployment's rollout was complete before the size grew, so it has no deadline now")
		change := client.MergeFrom(pending[0].DeepCopy())
		for i := range pending[0].Status.Conditions {
			pending[0].Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-6 * time.Minute))
		}
		Expect(cluster.Client.Status().Patch(ctx, &pending[0], change)).To(Succeed())
		expectConditions(ctx, memcached, broken("False TooFewPods", "PodsFailing"))
		Expect(problemOf(memcached)).To(Equal("a pod can't run: it fits on no node"))

		patch(ctx, memcached, `{"spec":{"size":2}}`)
		expectConditions(ctx, memcached, converged)
		expectEvents(ctx, memcached, "Normal EnoughPods", "Warning PodsFailing", "Normal EnoughPods")
	}, SpecTimeout(specTimeout))

	It("report a Deployment whose pods are refused", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		quota := limit(ctx, namespace, "pods", 1)
		memcached := newMemcached(namespace, "limited", 2)
		create(ctx, memcached)
		expectConditions(ctx, memcached, broken("False TooFewPods", "Stalled"))
		Expect(problemOf(memcached)).To(ContainSubstring("exceeded quota"), "users need the API server's message")

		Expect(cluster.Client.Delete(ctx, quota)).To(Succeed())
		tryPodsAgain(ctx, memcached)
		expectConditions(ctx, memcached, converged)
		expectEvents(ctx, memcached, "Warning Stalled", "Normal EnoughPods")
	}, SpecTimeout(specTimeout))

	It("report a Deployment that is refused itself", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		quota := limit(ctx, namespace, "count/deployments.apps", 0)
		memcached := newMemcached(namespace, "refused", 1)
		create(ctx, memcached)
		expectConditions(ctx, memcached, broken("False TooFewPods", "Refused"))
		Expect(problemOf(memcached)).To(ContainSubstring("exceeded quota"), "users need the API server's message")
		expectEvents(ctx, memcached, "Warning Refused")

		Expect(cluster.Client.Delete(ctx, quota)).To(Succeed())
		expectConditions(ctx, memcached, converged)
		expectEvents(ctx, memcached, "Warning Refused", "Normal EnoughPods")
	}, SpecTimeout(specTimeout))
})

// limit sets a quota for a namespace, and waits until it is in effect.
func limit(ctx context.Context, namespace string, what corev1.ResourceName, count int64) *corev1.ResourceQuota {
	GinkgoHelper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "limit"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{what: *resource.NewQuantity(count, resource.DecimalSI)}},
	}
	create(ctx, quota)
	eventually(ctx, func(g Gomega) {
		g.Expect(exists(ctx, g, quota)).To(BeTrue())
		g.Expect(quota.Status.Used).To(HaveKey(what), "the quota controller has not counted the objects yet")
	})
	return quota
}

// tryPodsAgain makes the ReplicaSet controller retry the creation of pods immediately.
// Otherwise it would retry after longer and longer pauses.
func tryPodsAgain(ctx context.Context, memcached *cachev1alpha1.Memcached) {
	GinkgoHelper()
	sets := &appsv1.ReplicaSetList{}
	Expect(cluster.Client.List(ctx, sets, client.InNamespace(memcached.Namespace))).To(Succeed())
	Expect(sets.Items).To(HaveLen(1))
	patch(ctx, &sets.Items[0], `{"metadata":{"annotations":{"test":"again"}}}`)
}

package controller_test

import (
	"context"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// startingImage is one whose container never gets further by itself, see testdata/stages.yaml.
const startingImage = "registry.test/waiting:ContainerCreating"

// needSimulatedPods skips a spec that decides how pods behave, where a real kubelet may.
func needSimulatedPods() {
	GinkgoHelper()
	if strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true") {
		Skip("how pods behave is up to the existing cluster")
	}
}

// waitForPods waits until a kubelet has seen as many pods as are given, and returns them.
func waitForPods(ctx context.Context, memcached *cachev1alpha1.Memcached, count int) []corev1.Pod {
	GinkgoHelper()
	var pods []corev1.Pod
	eventually(ctx, func(g Gomega) {
		pods = podsOf(ctx, g, memcached)
		g.Expect(pods).To(And(HaveLen(count), HaveEach(HaveField("Status.Phase", corev1.PodRunning))))
	})
	return pods
}

// setReady lets the pod's container run, and be ready or not.
func setReady(ctx context.Context, pod *corev1.Pod, ready bool) {
	GinkgoHelper()
	setContainer(ctx, pod, ready, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, 0)
}

// setWaiting lets the pod's container wait for a reason, such as CrashLoopBackOff.
func setWaiting(ctx context.Context, pod *corev1.Pod, reason string) {
	GinkgoHelper()
	setContainer(ctx, pod, false, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}, 0)
}

// setCrashed lets the pod's container run once more after it has ended twice.
func setCrashed(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	setContainer(ctx, pod, false, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, 2)
}

// setContainer writes what a kubelet would.
func setContainer(ctx context.Context, pod *corev1.Pod, ready bool, state corev1.ContainerState, restarts int32) {
	GinkgoHelper()
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	change := client.MergeFrom(pod.DeepCopy())
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		if condition.Type == corev1.PodReady || condition.Type == corev1.ContainersReady {
			condition.Status = status
		}
	}
	Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
	container := &pod.Status.ContainerStatuses[0]
	container.Ready, container.State, container.RestartCount = ready, state, restarts
	Expect(cluster.Client.Status().Patch(ctx, pod, change)).To(Succeed())
}

package controller_test

import (
	"context"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// startingImage is an image whose container never finishes starting by itself (see testdata/stages.yaml).
const startingImage = "registry.test/waiting:ContainerCreating"

// needSimulatedPods skips a spec that decides how pods behave, if real kubelets run them.
func needSimulatedPods() {
	GinkgoHelper()
	if strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true") {
		Skip("how pods behave is up to the existing cluster")
	}
}

// waitForPods waits until the Memcached has exactly this many pods, all running, and returns them.
func waitForPods(ctx context.Context, memcached *cachev1alpha1.Memcached, count int) []corev1.Pod {
	GinkgoHelper()
	var pods []corev1.Pod
	eventually(ctx, func(g Gomega) {
		pods = podsOf(ctx, g, memcached)
		g.Expect(pods).To(And(HaveLen(count), HaveEach(HaveField("Status.Phase", corev1.PodRunning))))
	})
	return pods
}

// setReady makes the pod's container run, ready or not.
func setReady(ctx context.Context, pod *corev1.Pod, ready bool) {
	GinkgoHelper()
	setContainer(ctx, pod, corev1.ContainerStatus{Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
}

// setWaiting puts the pod's container into the waiting state, with a reason such as CrashLoopBackOff.
func setWaiting(ctx context.Context, pod *corev1.Pod, reason string) {
	GinkgoHelper()
	setContainer(ctx, pod, corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}})
}

// setCrashed makes the pod's container run again after its second crash.
func setCrashed(ctx context.Context, pod *corev1.Pod, ended time.Time) {
	GinkgoHelper()
	setContainer(ctx, pod, corev1.ContainerStatus{
		State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(ended)}},
		RestartCount:         2,
	})
}

// setContainer writes a container status, and the pod's conditions that follow from it, as a kubelet would.
func setContainer(ctx context.Context, pod *corev1.Pod, found corev1.ContainerStatus) {
	GinkgoHelper()
	status := corev1.ConditionFalse
	if found.Ready {
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
	container.Ready, container.State = found.Ready, found.State
	container.LastTerminationState, container.RestartCount = found.LastTerminationState, found.RestartCount
	Expect(cluster.Client.Status().Patch(ctx, pod, change)).To(Succeed())
}

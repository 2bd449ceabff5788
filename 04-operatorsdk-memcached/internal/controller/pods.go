package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

const (
	// crashing says what is wrong with a container that has ended more than once.
	crashing = "its container ends again and again"
	// crashWindow is how long after its last exit such a container counts as
	// crashing. The kubelet uses the same time: it resets the back-off of a container
	// that has run for ten minutes (the back-off itself is at most five minutes).
	crashWindow = 10 * time.Minute
)

// failures say what is wrong with a container that waits for one of these
// reasons, which are the kubelet's. Some of them take turns, and then share a text.
var failures = map[string]string{
	"CrashLoopBackOff":           crashing,
	"RunContainerError":          "its container can't be started",
	"CreateContainerError":       "its container can't be created",
	"CreateContainerConfigError": "its container can't be created",
	"InvalidImageName":           "its image can't be pulled",
	"ErrImagePull":               "its image can't be pulled",
	"ImagePullBackOff":           "its image can't be pulled",
	"ErrImageNeverPull":          "its image can't be pulled",
}

// listPods returns the Deployment's pods without those that are ending; none if there is no Deployment.
func (r *MemcachedReconciler) listPods(ctx context.Context, deployment *appsv1.Deployment) ([]corev1.Pod, error) {
	if deployment == nil {
		return nil, nil
	}
	pods := &corev1.PodList{}
	err := r.List(ctx, pods, client.InNamespace(deployment.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
	if err != nil {
		return nil, fmt.Errorf("list the pods of Deployment %s: %w", client.ObjectKeyFromObject(deployment), err)
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return isEnding(&pod) }), nil
}

// readyNames are the names of the ready pods, sorted, so that the same pods always make the same list.
func readyNames(pods []corev1.Pod) []string {
	var names []string
	for i := range pods {
		if isReady(&pods[i]) {
			names = append(names, pods[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// failure says why a pod can't run; the zero value says that it has not failed.
type failure struct {
	message string
	// until is when the failure is over if nothing more happens to the pod; zero if an event will announce the end.
	until time.Time
}

// failureAmong says why one of the pods can't run, "" if none has failed. lookAgain
// is how soon that may be over without an event, 0 if it can't be. A pod of an
// older revision does not count: it is about to be replaced.
func failureAmong(pods []corev1.Pod, revision string, now time.Time) (message string, lookAgain time.Duration) {
	for i := range pods {
		failure := failureOf(&pods[i])
		left := failure.until.Sub(now)
		isOver := !failure.until.IsZero() && left <= 0
		if failure.message == "" || isOver || revisionOf(&pods[i]) != revision {
			continue
		}
		if message == "" || failure.message < message {
			message = failure.message
		}
		if left > 0 && (lookAgain == 0 || left < lookAgain) {
			lookAgain = left
		}
	}
	return message, lookAgain
}

// failureOf says why a pod can't run. Between two waits a crashing container runs
// for a moment. That is no recovery, unless it becomes ready or runs on for long:
// the number of restarts is never reset, so it alone proves nothing.
func failureOf(pod *corev1.Pod) failure {
	for _, container := range pod.Status.ContainerStatuses {
		last := container.LastTerminationState.Terminated
		switch {
		case container.Name != containerName:
		case container.State.Waiting != nil && failures[container.State.Waiting.Reason] != "":
			return failure{message: failures[container.State.Waiting.Reason]}
		case container.RestartCount > 1 && !container.Ready && last != nil:
			return failure{message: crashing, until: last.FinishedAt.Add(crashWindow)}
		}
	}
	return failure{}
}

// revisionOf is what the pod was made from.
func revisionOf(pod *corev1.Pod) string { return pod.Annotations[revisionAnnotation] }

func isEnding(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// keepEssentials removes from a pod, on the way into the cache, what nothing here reads.
func keepEssentials(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := corev1.PodStatus{Phase: pod.Status.Phase}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			kept.Conditions = []corev1.PodCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != containerName {
			continue
		}
		container := corev1.ContainerStatus{Name: status.Name, Ready: status.Ready, RestartCount: status.RestartCount}
		if status.State.Waiting != nil {
			container.State.Waiting = &corev1.ContainerStateWaiting{Reason: status.State.Waiting.Reason}
		}
		if last := status.LastTerminationState.Terminated; last != nil {
			container.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: last.FinishedAt}
		}
		kept.ContainerStatuses = []corev1.ContainerStatus{container}
	}
	pod.Annotations = map[string]string{revisionAnnotation: revisionOf(pod)}
	pod.ManagedFields, pod.OwnerReferences, pod.Finalizers = nil, nil, nil
	pod.Spec, pod.Status = corev1.PodSpec{}, kept
	return pod, nil
}

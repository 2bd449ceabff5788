package controller

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	// crashing is the message for a container that exits again and again.
	crashing = "its container keeps crashing"
	// crashWindow is how long a container counts as crashing after its last
	// exit. The kubelet uses the same time: it resets the back-off of a container
	// that has run for ten minutes.
	crashWindow = 10 * time.Minute
	// unschedulable is the message for a pod that the scheduler finds no node for.
	unschedulable = "it fits on no node"
	// schedulingDeadline is how long a pod may wait for a node before that counts as
	// a failure. A cluster autoscaler needs a few minutes to add a node.
	schedulingDeadline = 5 * time.Minute
)

// failures maps the kubelet's reasons for a waiting container to our messages.
// ErrImagePull and ImagePullBackOff alternate, so they share a message: the status stays the same.
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

// podsOf returns the Deployment's pods without those that are terminating or have finished. Without a Deployment there
// are none: pods with the Memcached's labels may belong to someone else's Deployment. The call overwrites pods.
//
//workshop:step 4.12a
func podsOf(deployment *appsv1.Deployment, pods []corev1.Pod) []corev1.Pod {
	if deployment == nil {
		return nil
	}
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return isTerminating(&pod) })
}

// readyNames returns the names of the ready pods, sorted, so that the same pods always give the same list.
//
//workshop:step 4.12a
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

// podFailure says why a pod can't run; the zero value means that no failure is known.
type podFailure struct {
	message string
	// from is when the failure starts counting, unless the pod gets a node by then. It is zero if the failure counts at
	// once.
	from time.Time
	// until is when the failure stops counting, unless the container exits again. It is zero if a watch event will
	// announce the end of the failure.
	until time.Time
}

// failureAmong says why one of the pods can't run, or returns "" if no failure counts now.
// requeueAfter is how soon that may change without a watch event, or 0 if it can't.
// A pod of an older revision does not count: the rollout removes it.
//
//workshop:step 4.11b
func failureAmong(pods []corev1.Pod, revision string, now time.Time) (message string, requeueAfter time.Duration) {
	for i := range pods {
		failure := failureOf(&pods[i])
		wait, left := failure.from.Sub(now), failure.until.Sub(now)
		isOver := !failure.until.IsZero() && left <= 0
		if failure.message == "" || isOver || revisionOf(&pods[i]) != revision {
			continue
		}
		if wait <= 0 && (message == "" || failure.message < message) {
			message = failure.message
		}
		if change := max(wait, left); change > 0 && (requeueAfter == 0 || change < requeueAfter) {
			requeueAfter = change
		}
	}
	return message, requeueAfter
}

// failureOf says why a pod can't run. A pod without a node counts as a failure after schedulingDeadline, because the
// Deployment's own deadline is only for rollouts, not for pods that are added later. Between two back-offs, a crashing
// container runs for a moment. It has recovered only if it is ready, or hasn't exited for crashWindow. The restart
// count can't tell, because it is never reset.
//
//workshop:step 4.11a
func failureOf(pod *corev1.Pod) podFailure {
	for _, condition := range pod.Status.Conditions {
		if isUnschedulable(condition) {
			return podFailure{message: unschedulable, from: condition.LastTransitionTime.Add(schedulingDeadline)}
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		last := container.LastTerminationState.Terminated
		switch {
		case container.Name != containerName:
		case container.State.Waiting != nil && failures[container.State.Waiting.Reason] != "":
			return podFailure{message: failures[container.State.Waiting.Reason]}
		case container.RestartCount > 1 && !container.Ready && last != nil:
			return podFailure{message: crashing, until: last.FinishedAt.Add(crashWindow)}
		}
	}
	return podFailure{}
}

func revisionOf(pod *corev1.Pod) string { return pod.Annotations[revisionAnnotation] }

// isTerminating reports whether the pod is being deleted, or has finished already.
func isTerminating(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isUnschedulable reports whether the condition says that the scheduler has found no node for the pod.
func isUnschedulable(condition corev1.PodCondition) bool {
	return condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// keepEssentials is a cache transform. It drops parts of a pod that the operator doesn't read: the spec, most of the
// status, and some of the metadata.
func keepEssentials(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := corev1.PodStatus{Phase: pod.Status.Phase}
	for _, condition := range pod.Status.Conditions {
		switch {
		case condition.Type == corev1.PodReady:
			kept.Conditions = append(kept.Conditions, corev1.PodCondition{Type: condition.Type, Status: condition.Status})
		case isUnschedulable(condition):
			condition.Message = ""
			kept.Conditions = append(kept.Conditions, condition)
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

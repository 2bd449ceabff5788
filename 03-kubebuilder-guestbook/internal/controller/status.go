package controller

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

// observedCondition returns the condition of a Guestbook whose children are not blocked.
//
// It counts the pods, which the status needs anyway. The Deployment's status can be relied on only once its
// observedGeneration is current: until then, it describes an older spec.
//
//workshop:step 3.5k
func observedCondition(guestbook *webappv1.Guestbook, deployment *appsv1.Deployment, pods []corev1.Pod) metav1.Condition {
	revision := deployment.Spec.Template.Annotations[revisionAnnotation]
	ready, old := 0, 0
	for i := range pods {
		if revisionOf(&pods[i]) != revision {
			old++
		}
		if isReady(&pods[i]) {
			ready++
		}
	}
	if size := int(guestbook.Spec.Size); ready == size && len(pods) == size && old == 0 {
		return newCondition(metav1.ConditionTrue, webappv1.ReasonAvailable, "all pods serve the page")
	}
	if problem := stalled(deployment); problem != "" {
		return newCondition(metav1.ConditionFalse, webappv1.ReasonStalled, fmt.Sprintf("Deployment %q makes no progress: %s", deployment.Name, problem))
	}
	// The message has no numbers, because replicas and readyReplicas are in the status already.
	return newCondition(metav1.ConditionFalse, webappv1.ReasonProgressing, "pods are being created, replaced or removed")
}

// explanation says why a child is blocked. The Guestbook's condition reports the reason and the message.
type explanation struct{ reason, message string }

// condition returns the condition of a Guestbook with a blocked child.
func (e *explanation) condition() metav1.Condition {
	return newCondition(metav1.ConditionFalse, e.reason, e.message)
}

func newCondition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: webappv1.ConditionReady, Status: status, Reason: reason, Message: message}
}

// stalled returns the Deployment controller's message if that controller has observed the current generation, and
// reports that the rollout makes no progress, or that pods can't be created or deleted. Otherwise, stalled returns "".
func stalled(deployment *appsv1.Deployment) string {
	if deployment.Status.ObservedGeneration < deployment.Generation {
		return ""
	}
	for _, condition := range deployment.Status.Conditions {
		failed := condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue
		late := condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse
		if failed || late {
			return condition.Message
		}
	}
	return ""
}

// newStatus computes the status from the pods and the condition. It starts from a copy of the current
// status, to keep the transition time of the condition, and the conditions of other controllers.
//
//workshop:step 3.5l
func newStatus(guestbook *webappv1.Guestbook, pods []corev1.Pod, ready metav1.Condition) *webappv1.GuestbookStatus {
	status := guestbook.Status.DeepCopy()
	status.Active, status.Standby = "", nil
	names := readyNames(pods)
	if len(names) > 0 {
		status.Active, status.Standby = names[0], names[1:]
	}
	status.Replicas, status.ReadyReplicas = int32(len(pods)), int32(len(names))
	status.Selector = labels.FormatLabels(selectorLabels(guestbook))
	status.ObservedGeneration = guestbook.Generation
	ready.ObservedGeneration = guestbook.Generation
	meta.SetStatusCondition(&status.Conditions, ready)
	return status
}

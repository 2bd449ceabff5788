package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

// actionReconcile is what the controller was doing at the time of any event.
const actionReconcile = "Reconcile"

// +kubebuilder:rbac:groups=webapp.my.domain,resources=guestbooks/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// observedCondition returns the condition of a Guestbook that has its children.
//
// It counts the pods rather than trusting the Deployment's status: that one
// speaks of the present template only some time after the template has changed.
func observedCondition(guestbook *webappv1.Guestbook, deployment *appsv1.Deployment, pods []corev1.Pod) metav1.Condition {
	revision := deployment.Spec.Template.Annotations[revisionAnnotation]
	ready, outdated := 0, 0
	for i := range pods {
		if revisionOf(&pods[i]) != revision {
			outdated++
		}
		if isReady(&pods[i]) {
			ready++
		}
	}
	if size := int(guestbook.Spec.Size); ready == size && len(pods) == size && outdated == 0 {
		return newCondition(metav1.ConditionTrue, webappv1.ReasonAvailable, "all pods serve the page")
	}
	if problem := stalled(deployment); problem != "" {
		return newCondition(metav1.ConditionFalse, webappv1.ReasonStalled, fmt.Sprintf("Deployment %q makes no progress: %s", deployment.Name, problem))
	}
	// No numbers here: the message would change, and be written, with every pod.
	return newCondition(metav1.ConditionFalse, webappv1.ReasonProgressing, "pods are being made or replaced")
}

// condition is that of a Guestbook with a child that is blocked.
func (o *obstacle) condition() metav1.Condition {
	return newCondition(metav1.ConditionFalse, o.reason, o.message)
}

func newCondition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: webappv1.ConditionReady, Status: status, Reason: reason, Message: message}
}

// stalled returns what the Deployment controller says about a rollout that is stuck, "" if it is not.
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

// newStatus returns the status that the pods and the condition make. It begins
// with a copy of the present one only so that conditions keep their times.
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

// updateStatus writes the status if it differs from the one that the Guestbook
// has, and announces what it changes.
//
// The lock, which is the resource version in the patch, makes the API server
// refuse a status that was computed from a Guestbook which has changed since:
// even one that only lacks our own last status, because the cache lags behind.
func (r *GuestbookReconciler) updateStatus(ctx context.Context, guestbook *webappv1.Guestbook, pods []corev1.Pod, ready metav1.Condition) error {
	status := newStatus(guestbook, pods, ready)
	if equality.Semantic.DeepEqual(&guestbook.Status, status) {
		return nil
	}
	before := guestbook.DeepCopy()
	guestbook.Status = *status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, guestbook, patch); err != nil {
		return fmt.Errorf("patch the status of Guestbook %s: %w", client.ObjectKeyFromObject(guestbook), err)
	}
	r.announce(guestbook, before.Status.Conditions, ready)
	return nil
}

// announce emits an event if the condition has changed in a way that people
// wait for. Resyncs and restarts change nothing, and so are silent.
func (r *GuestbookReconciler) announce(guestbook *webappv1.Guestbook, before []metav1.Condition, ready metav1.Condition) {
	last := meta.FindStatusCondition(before, webappv1.ConditionReady)
	if ready.Reason == webappv1.ReasonProgressing || last != nil && last.Reason == ready.Reason {
		return
	}
	eventType := corev1.EventTypeWarning
	if ready.Status == metav1.ConditionTrue {
		eventType = corev1.EventTypeNormal
	}
	r.Recorder.Eventf(guestbook, nil, eventType, ready.Reason, actionReconcile, "%s", ready.Message)
}

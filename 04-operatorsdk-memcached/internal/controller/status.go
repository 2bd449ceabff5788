package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// actionReconcile is what the operator was doing at the time of any event.
const actionReconcile = "Reconcile"

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// findings are what a reconcile has found, and all that a status is made of.
type findings struct {
	// deployment is nil if the Memcached has none; then there is an obstacle.
	deployment *appsv1.Deployment
	// pods are the Deployment's, without those that are ending.
	pods []corev1.Pod
	// obstacle is nil if no child is blocked.
	obstacle *obstacle
	now      time.Time
}

// conditions returns one condition of each type.
func (f findings) conditions(memcached *cachev1alpha1.Memcached) []metav1.Condition {
	problem := f.problem()
	return []metav1.Condition{f.available(memcached), f.progressing(memcached, problem), degraded(problem)}
}

// available counts the ready pods by the Deployment's own rule, which lets a quarter of them be
// missing. Pods of an older revision serve clients too.
func (f findings) available(memcached *cachev1alpha1.Memcached) metav1.Condition {
	if f.obstacle != nil && f.obstacle.reason == cachev1alpha1.ReasonNameTaken {
		return newCondition(cachev1alpha1.ConditionAvailable, false, f.obstacle.reason, f.obstacle.message)
	}
	size := int(memcached.Spec.Size)
	if len(readyNames(f.pods)) < size-size/4 {
		return newCondition(cachev1alpha1.ConditionAvailable, false, cachev1alpha1.ReasonTooFewPods, "too few pods are ready")
	}
	return newCondition(cachev1alpha1.ConditionAvailable, true, cachev1alpha1.ReasonEnoughPods, "enough pods are ready")
}

func (f findings) progressing(memcached *cachev1alpha1.Memcached, problem *obstacle) metav1.Condition {
	switch {
	case problem != nil:
		return newCondition(cachev1alpha1.ConditionProgressing, false, problem.reason, "nothing is under way: see the condition Degraded")
	case f.obstacle != nil:
		return newCondition(cachev1alpha1.ConditionProgressing, true, f.obstacle.reason, f.obstacle.message)
	case f.rolledOut(memcached):
		return newCondition(cachev1alpha1.ConditionProgressing, false, cachev1alpha1.ReasonRolledOut, "all pods are as the spec asks")
	}
	// No numbers here: the message would change, and be written, with every pod.
	return newCondition(cachev1alpha1.ConditionProgressing, true, cachev1alpha1.ReasonRollingOut, "pods are being made, replaced or removed")
}

func degraded(problem *obstacle) metav1.Condition {
	if problem == nil {
		return newCondition(cachev1alpha1.ConditionDegraded, false, cachev1alpha1.ReasonAsExpected, "nothing is wrong")
	}
	return newCondition(cachev1alpha1.ConditionDegraded, true, problem.reason, problem.message)
}

// problem is what somebody has to look at, nil if there is nothing. An obstacle
// that goes away by itself is none.
func (f findings) problem() *obstacle {
	if f.obstacle != nil {
		if f.obstacle.reason == cachev1alpha1.ReasonRollingOut {
			return nil
		}
		return f.obstacle
	}
	if failure, _ := failureAmong(f.pods, f.revision(), f.now); failure != "" {
		return &obstacle{reason: cachev1alpha1.ReasonPodsFailing, message: "a pod can't run: " + failure}
	}
	if reason := stalled(f.deployment); reason != "" {
		return &obstacle{reason: cachev1alpha1.ReasonStalled, message: fmt.Sprintf("Deployment %q makes no progress: %s", f.deployment.Name, reason)}
	}
	return nil
}

// lookAgain is how soon the conditions may change without an event, 0 if they can't.
func (f findings) lookAgain() time.Duration {
	if f.deployment == nil {
		return 0
	}
	_, after := failureAmong(f.pods, f.revision(), f.now)
	return after
}

// revision is what the pods are to be made from.
func (f findings) revision() string {
	return f.deployment.Spec.Template.Annotations[revisionAnnotation]
}

// rolledOut tells whether all pods are ready and of the present revision, and no others are there.
//
// It looks at the pods rather than at the Deployment's status: that one speaks of
// the present template only some time after the template has changed.
func (f findings) rolledOut(memcached *cachev1alpha1.Memcached) bool {
	outdated := func(pod corev1.Pod) bool { return revisionOf(&pod) != f.revision() }
	size := int(memcached.Spec.Size)
	return len(f.pods) == size && len(readyNames(f.pods)) == size && !slices.ContainsFunc(f.pods, outdated)
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

func newCondition(kind string, holds bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// newStatus returns the status that the findings make. It begins with a copy of
// the present one only so that conditions keep their times.
func newStatus(memcached *cachev1alpha1.Memcached, found findings) *cachev1alpha1.MemcachedStatus {
	status := memcached.Status.DeepCopy()
	status.Nodes = readyNames(found.pods)
	status.Replicas, status.ReadyReplicas = int32(len(found.pods)), int32(len(status.Nodes))
	status.Selector = labels.FormatLabels(selectorLabels(memcached))
	status.ObservedGeneration = memcached.Generation
	for _, condition := range found.conditions(memcached) {
		condition.ObservedGeneration = memcached.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// updateStatus writes the status if it differs from the one that the Memcached
// has, and announces what it changes.
//
// The lock, which is the resource version in the patch, makes the API server
// refuse a status that was computed from a Memcached which has changed since:
// even one that only lacks our own last status, because the cache lags behind.
func (r *MemcachedReconciler) updateStatus(ctx context.Context, memcached *cachev1alpha1.Memcached, found findings) error {
	status := newStatus(memcached, found)
	if equality.Semantic.DeepEqual(&memcached.Status, status) {
		return nil
	}
	before := memcached.DeepCopy()
	memcached.Status = *status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, memcached, patch); err != nil {
		return fmt.Errorf("patch the status of Memcached %s: %w", client.ObjectKeyFromObject(memcached), err)
	}
	r.announce(memcached, before.Status.Conditions, status.Conditions)
	return nil
}

// announce emits an event if the Memcached has become available or degraded, or
// is degraded for another reason. Resyncs and restarts change nothing, and so are silent.
func (r *MemcachedReconciler) announce(memcached *cachev1alpha1.Memcached, before, after []metav1.Condition) {
	for _, condition := range after {
		last := meta.FindStatusCondition(before, condition.Type)
		unchanged := last != nil && last.Status == condition.Status && last.Reason == condition.Reason
		announced := []string{cachev1alpha1.ConditionAvailable, cachev1alpha1.ConditionDegraded}
		if unchanged || condition.Status != metav1.ConditionTrue || !slices.Contains(announced, condition.Type) {
			continue
		}
		eventType := corev1.EventTypeNormal
		if condition.Type == cachev1alpha1.ConditionDegraded {
			eventType = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(memcached, nil, eventType, condition.Reason, actionReconcile, "%s", condition.Message)
	}
}

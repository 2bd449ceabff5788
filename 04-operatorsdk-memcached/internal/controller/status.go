package controller

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// observation is what a reconcile has observed of the children and the pods. The status is computed from it and the
// spec.
type observation struct {
	// deployment is the Memcached's Deployment. It is nil if the Memcached has none; then blocker is not nil.
	deployment *appsv1.Deployment
	// pods holds the Deployment's pods, as podsOf returns them.
	pods []corev1.Pod
	// blocker says why a child is blocked. It is nil if no child is blocked.
	blocker *explanation
	now     time.Time
}

// explanation is the reason and the message with which a condition reports a blocked child or another problem.
type explanation struct{ reason, message string }

// newStatus computes the status from the spec and the observation. It starts from a copy of the current
// status only to keep transition times, and conditions that other controllers have added.
func newStatus(memcached *cachev1alpha1.Memcached, observed observation) *cachev1alpha1.MemcachedStatus {
	status := memcached.Status.DeepCopy()
	status.Nodes = readyNames(observed.pods)
	status.Replicas, status.ReadyReplicas = int32(len(observed.pods)), int32(len(status.Nodes))
	status.Selector = labels.FormatLabels(selectorLabels(memcached))
	status.ObservedGeneration = memcached.Generation
	for _, condition := range observed.conditions(memcached) {
		condition.ObservedGeneration = memcached.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// refusedStatus returns the status of a Memcached that can't go away, because the API server refuses a request that
// finalize makes. Everything but the condition Degraded stays as it was before the deletion.
func refusedStatus(memcached *cachev1alpha1.Memcached, problem *explanation) *cachev1alpha1.MemcachedStatus {
	status := memcached.Status.DeepCopy()
	condition := newCondition(cachev1alpha1.ConditionDegraded, true, problem.reason, problem.message)
	condition.ObservedGeneration = memcached.Generation
	meta.SetStatusCondition(&status.Conditions, condition)
	return status
}

// conditions computes the conditions from the observation and the spec, at most one of each type.
//
//workshop:step 4.12a
func (o observation) conditions(memcached *cachev1alpha1.Memcached) []metav1.Condition {
	problem := o.problem() //workshop:step 4.12b
	return []metav1.Condition{
		o.available(memcached),
		o.progressing(memcached, problem), //workshop:step 4.12d
		degraded(problem),                 //workshop:step 4.12b
	}
}

// available returns a False condition if the name of a child is taken. Otherwise, it follows a Deployment's default
// rule: a quarter of the pods, rounded down, may be unavailable. A ready pod of an older revision counts as available,
// because it serves clients, too.
//
//workshop:step 4.12a
func (o observation) available(memcached *cachev1alpha1.Memcached) metav1.Condition {
	if o.blocker != nil && o.blocker.reason == cachev1alpha1.ReasonNameTaken {
		return newCondition(cachev1alpha1.ConditionAvailable, false, o.blocker.reason, o.blocker.message)
	}
	size := int(memcached.Spec.Size)
	if len(readyNames(o.pods)) < size-size/4 {
		return newCondition(cachev1alpha1.ConditionAvailable, false, cachev1alpha1.ReasonTooFewPods, "too few pods are ready")
	}
	return newCondition(cachev1alpha1.ConditionAvailable, true, cachev1alpha1.ReasonEnoughPods, "enough pods are ready")
}

//workshop:step 4.12d
func (o observation) progressing(memcached *cachev1alpha1.Memcached, problem *explanation) metav1.Condition {
	switch {
	case problem != nil:
		return newCondition(cachev1alpha1.ConditionProgressing, false, problem.reason, "nothing is in progress: see the condition Degraded")
	case o.blocker != nil:
		return newCondition(cachev1alpha1.ConditionProgressing, true, o.blocker.reason, o.blocker.message)
	case o.rolledOut(memcached):
		return newCondition(cachev1alpha1.ConditionProgressing, false, cachev1alpha1.ReasonRolledOut, "all pods match the spec")
	}
	// The message has no numbers, because replicas and readyReplicas are in the status already.
	return newCondition(cachev1alpha1.ConditionProgressing, true, cachev1alpha1.ReasonRollingOut, "pods are being created, replaced or removed")
}

//workshop:step 4.12b
func degraded(problem *explanation) metav1.Condition {
	if problem == nil {
		return newCondition(cachev1alpha1.ConditionDegraded, false, cachev1alpha1.ReasonAsExpected, "nothing is wrong")
	}
	return newCondition(cachev1alpha1.ConditionDegraded, true, problem.reason, problem.message)
}

// problem returns what the operator can't fix by itself, or nil if there is nothing. While a child is being replaced,
// problem returns nil, even if pods fail: they may belong to the Deployment that is about to go.
//
//workshop:step 4.12b
func (o observation) problem() *explanation {
	if o.blocker != nil {
		if o.blocker.reason == cachev1alpha1.ReasonRollingOut {
			return nil
		}
		return o.blocker
	}
	//workshop:step 4.12c
	if failure, _ := failureAmong(o.pods, o.revision(), o.now); failure != "" {
		return &explanation{reason: cachev1alpha1.ReasonPodsFailing, message: "a pod can't run: " + failure}
	}
	//workshop:step 4.12c
	if reason := stalled(o.deployment); reason != "" {
		return &explanation{reason: cachev1alpha1.ReasonStalled, message: fmt.Sprintf("Deployment %q makes no progress: %s", o.deployment.Name, reason)}
	}
	return nil
}

// requeueAfter returns how soon the conditions may change without a watch event, or 0 if they can't. While a child is
// blocked, or without a Deployment, they don't depend on the time.
//
//workshop:step 4.12c
func (o observation) requeueAfter() time.Duration {
	if o.blocker != nil || o.deployment == nil {
		return 0
	}
	_, after := failureAmong(o.pods, o.revision(), o.now)
	return after
}

// revision returns the revision that the pods should have.
//
//workshop:step 4.12c
func (o observation) revision() string {
	return o.deployment.Spec.Template.Annotations[revisionAnnotation]
}

// rolledOut reports whether exactly the desired number of pods exist, all ready and of the current revision.
// Pods that are terminating or have finished don't count.
//
// It counts the pods, which the status needs anyway. The Deployment's status can be relied on only once its
// observedGeneration is current: until then, it describes an older spec.
//
//workshop:step 4.12d
func (o observation) rolledOut(memcached *cachev1alpha1.Memcached) bool {
	old := func(pod corev1.Pod) bool { return revisionOf(&pod) != o.revision() }
	size := int(memcached.Spec.Size)
	return len(o.pods) == size && len(readyNames(o.pods)) == size && !slices.ContainsFunc(o.pods, old)
}

// stalled returns the Deployment controller's message if that controller has observed the current generation, and
// reports that the rollout makes no progress, or that pods can't be created or deleted. Otherwise, stalled returns "".
//
//workshop:step 4.12c
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

func newCondition(conditionType string, isTrue bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if isTrue {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

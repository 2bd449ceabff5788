package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// actionReconcile is what the operator was doing at the time of any event.
const actionReconcile = "Reconcile"

// +kubebuilder:rbac:groups=secret.example.com,resources=passwords/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// newStatus returns the status of a Password whose own Secret is the given one, nil
// if it has none, and which meets an obstacle, nil if there is none. It begins with
// the present conditions only so that they keep their times.
func newStatus(password *secretv1.Password, secret *corev1.Secret, obstacle *obstacle) *secretv1.PasswordStatus {
	condition := readyCondition(obstacle)
	condition.ObservedGeneration = password.Generation
	status := &secretv1.PasswordStatus{
		State:              stateOf(obstacle),
		ObservedGeneration: password.Generation,
		Conditions:         password.Status.DeepCopy().Conditions,
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	if secret == nil {
		return status
	}
	status.SecretName = secret.Name
	made, intact := sealedAt(secret)
	if !intact {
		return status
	}
	status.LastRotated = &metav1.Time{Time: made}
	status.Fingerprint = secret.Annotations[fingerprintAnnotation]
	if rotation := password.Spec.Rotation; rotation != nil {
		status.NextRotation = &metav1.Time{Time: made.Add(rotation.EffectiveAfter())}
	}
	return status
}

func readyCondition(obstacle *obstacle) metav1.Condition {
	if obstacle != nil {
		return metav1.Condition{Type: secretv1.ConditionReady, Status: metav1.ConditionFalse, Reason: obstacle.reason, Message: obstacle.message}
	}
	return metav1.Condition{
		Type: secretv1.ConditionReady, Status: metav1.ConditionTrue,
		Reason: secretv1.ReasonGenerated, Message: "the Secret holds a password as the policy asks",
	}
}

func stateOf(obstacle *obstacle) string {
	switch {
	case obstacle == nil:
		return secretv1.StateReady
	case obstacle.reason == secretv1.ReasonReplacing:
		return secretv1.StatePending
	}
	return secretv1.StateFailed
}

// updateStatus writes the status if it differs from the one that the Password
// has, and announces what it changes.
//
// The lock, which is the resource version in the patch, makes the API server
// refuse a status that was computed from a Password which has changed since:
// even one that only lacks our own last status, because the cache lags behind.
func (r *PasswordReconciler) updateStatus(ctx context.Context, password *secretv1.Password, secret *corev1.Secret, obstacle *obstacle) error {
	status := newStatus(password, secret, obstacle)
	if equality.Semantic.DeepEqual(&password.Status, status) {
		return nil
	}
	before := password.DeepCopy()
	password.Status = *status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, password, patch); err != nil {
		return fmt.Errorf("patch the status of Password %s: %w", client.ObjectKeyFromObject(password), err)
	}
	r.announceFailure(password, before.Status.Conditions, obstacle)
	return nil
}

// announceFailure emits an event if somebody has come to be needed, or for another
// reason. Resyncs and restarts change nothing, and so are silent.
func (r *PasswordReconciler) announceFailure(password *secretv1.Password, before []metav1.Condition, obstacle *obstacle) {
	if password.Status.State != secretv1.StateFailed {
		return
	}
	if last := meta.FindStatusCondition(before, secretv1.ConditionReady); last != nil && last.Reason == obstacle.reason {
		return
	}
	r.Recorder.Eventf(password, nil, corev1.EventTypeWarning, obstacle.reason, actionReconcile, "%s", obstacle.message)
}

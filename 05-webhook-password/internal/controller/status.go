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

// actionReconcile is the action of all events.
const actionReconcile = "Reconcile"

//workshop:markers 5.4e
// +kubebuilder:rbac:groups=secret.example.com,resources=passwords/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// newStatus returns the status of a Password. secret is the Secret that ensureSecret has returned, or nil; blocked is
// the reason why the Password is blocked, or nil. newStatus starts from the current conditions, to keep their
// transition times and the conditions of other controllers.
//
//workshop:step 5.4a
func newStatus(password *secretv1.Password, secret *corev1.Secret, blocked *blockedError) *secretv1.PasswordStatus {
	condition := readyCondition(blocked)
	condition.ObservedGeneration = password.Generation
	status := &secretv1.PasswordStatus{
		State:              stateOf(blocked),
		ObservedGeneration: password.Generation,
		Conditions:         password.Status.DeepCopy().Conditions,
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	if secret == nil {
		return status
	}
	status.SecretName = secret.Name
	made, intact := signedAt(secret)
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

//workshop:step 5.4a
func readyCondition(blocked *blockedError) metav1.Condition {
	if blocked != nil {
		return metav1.Condition{Type: secretv1.ConditionReady, Status: metav1.ConditionFalse, Reason: blocked.reason, Message: blocked.message}
	}
	return metav1.Condition{
		Type: secretv1.ConditionReady, Status: metav1.ConditionTrue,
		Reason: secretv1.ReasonGenerated, Message: "the Secret holds a password that meets the policy",
	}
}

//workshop:step 5.4a
func stateOf(blocked *blockedError) string {
	switch {
	case blocked == nil:
		return secretv1.StateReady
	case blocked.reason == secretv1.ReasonReplacing:
		return secretv1.StatePending
	}
	return secretv1.StateFailed
}

// updateStatus writes the status if it has changed, and announces a new failure.
//
// With the optimistic lock, which is the resource version in the patch, the API server refuses a status that was
// computed from an old Password. If the operator watches several namespaces, the cache may lack even the operator's own
// last write.
//
//workshop:step 5.4b
func (r *PasswordReconciler) updateStatus(ctx context.Context, password *secretv1.Password, secret *corev1.Secret, blocked *blockedError) error {
	status := newStatus(password, secret, blocked)
	if equality.Semantic.DeepEqual(&password.Status, status) {
		return nil
	}
	before := password.DeepCopy()
	password.Status = *status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, password, patch); err != nil {
		return fmt.Errorf("patch the status of Password %s: %w", client.ObjectKeyFromObject(password), err)
	}
	//workshop:step 5.4d
	r.announceFailure(password, before.Status.Conditions, blocked)
	return nil
}

// announceFailure records an event when the Password starts to fail, or fails for a different reason.
// A resync or a restart finds the failure in the status already, so it records no event.
//
//workshop:step 5.4d
func (r *PasswordReconciler) announceFailure(password *secretv1.Password, before []metav1.Condition, blocked *blockedError) {
	if password.Status.State != secretv1.StateFailed {
		return
	}
	if last := meta.FindStatusCondition(before, secretv1.ConditionReady); last != nil && last.Reason == blocked.reason {
		return
	}
	r.Recorder.Eventf(password, nil, corev1.EventTypeWarning, blocked.reason, actionReconcile, "%s", blocked.message)
}

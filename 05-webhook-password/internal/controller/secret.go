package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	"example.com/operator-workshop/05-webhook-password/internal/generator"
)

//workshop:markers 5.4e
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch

// ensureSecret creates the Secret, or patches it if it needs a new password or lacks the operator's label. It returns
// the Password's own Secret, or nil if the Password has none, its Secret is being deleted, or spec.secretName is
// invalid or taken. If something blocks the Password, ensureSecret also returns a blockedError.
//
//workshop:step 5.2a
func (r *PasswordReconciler) ensureSecret(ctx context.Context, password *secretv1.Password) (*corev1.Secret, error) {
	//workshop:step 5.4c
	if problems := password.Spec.ValidateSecretName(field.NewPath("spec", "secretName")); len(problems) > 0 {
		return nil, impossible(problems)
	}
	secret, err := r.findSecret(ctx, password)
	if err != nil {
		return nil, err
	}
	//workshop:step 5.2c
	if blocked := findBlocker(password, secret); blocked != nil {
		return nil, blocked
	}
	//workshop:step 5.10
	if secret == nil {
		if former, err := r.findFormer(ctx, password); err != nil {
			return former, err
		}
	}
	//workshop:until 5.2b return secret, nil
	//workshop:between 5.2b 5.3c if secret != nil { return secret, nil }
	//workshop:between 5.2b 5.3c reason := &generateReason{corev1.EventTypeNormal, eventGenerated, "there was none"}
	//workshop:step 5.3c
	reason := reasonToGenerate(secret, password, r.Clock.Now())
	//workshop:step 5.3c
	if reason == nil {
		return r.patchSecret(ctx, password, secret, secret.DeepCopy(), nil)
	}
	//workshop:step 5.4c
	if problems := generator.Check(password.Spec.Policy, field.NewPath("spec", "policy")); len(problems) > 0 {
		return secret, impossible(problems)
	}
	//workshop:step 5.2b
	value, err := generator.Generate(password.Spec.Policy)
	//workshop:step 5.2b
	if err != nil {
		return secret, fmt.Errorf("generate a password: %w", err)
	}
	//workshop:between 5.2b 5.3c return r.createSecret(ctx, password, value, reason)
	//workshop:step 5.3c
	if secret == nil {
		return r.createSecret(ctx, password, value, reason)
	}
	//workshop:step 5.3c
	desired := secret.DeepCopy()
	//workshop:step 5.3c
	sign(desired, password.Spec.Policy, value, r.Clock.Now())
	//workshop:step 5.3c
	return r.patchSecret(ctx, password, secret, desired, reason)
}

// findFormer returns the Secret that the Password has under a name other than the effective one, with a blockedError.
// It returns nil if there is none, or if that Secret is being deleted. The webhook refuses a change to the name. If the
// webhook is switched off, the operator still must not make a second Secret: the first one would stay behind, with a
// password that is never rotated.
//
//workshop:step 5.10
func (r *PasswordReconciler) findFormer(ctx context.Context, password *secretv1.Password) (*corev1.Secret, error) {
	secrets := &corev1.SecretList{}
	// Without this option, the cache would copy each of the namespace's Secrets for each new Password. Copies are not
	// needed, because nothing here changes a Secret.
	if err := r.List(ctx, secrets, client.InNamespace(password.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Secrets of namespace %s: %w", password.Namespace, err)
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if !metav1.IsControlledBy(secret, password) || secret.DeletionTimestamp != nil {
			continue
		}
		return secret, &blockedError{
			reason:  secretv1.ReasonNameChanged,
			message: fmt.Sprintf("this Password already has the Secret %q: change spec.secretName back from %q, or delete the Secret", secret.Name, password.EffectiveSecretName()),
		}
	}
	return nil, nil
}

// findSecret returns the Secret that has the effective name, or nil if there is none.
//
//workshop:step 5.2a
func (r *PasswordReconciler) findSecret(ctx context.Context, password *secretv1.Password) (*corev1.Secret, error) {
	key := client.ObjectKey{Namespace: password.Namespace, Name: password.EffectiveSecretName()}
	secret := &corev1.Secret{}
	err := r.Get(ctx, key, secret)
	//workshop:step 5.3d
	// The cache has only Secrets with the operator's label, so "not found" there proves nothing.
	if apierrors.IsNotFound(err) {
		secret, err = r.lookUp(ctx, key, password)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", key, err)
	}
	return secret, nil
}

// lookUp reads a Secret from the API server. It first reads just the metadata, to see who owns the Secret, and reads
// the data only if the Password does.
//
//workshop:step 5.3d
func (r *PasswordReconciler) lookUp(ctx context.Context, key client.ObjectKey, password *secretv1.Password) (*corev1.Secret, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := r.APIReader.Get(ctx, key, found); err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(found, password) {
		return &corev1.Secret{ObjectMeta: found.ObjectMeta}, nil
	}
	secret := &corev1.Secret{}
	return secret, r.APIReader.Get(ctx, key, secret)
}

// createSecret creates the Secret in one write, so that it is never incomplete. Then it announces the new password.
//
//workshop:step 5.2b
func (r *PasswordReconciler) createSecret(ctx context.Context, password *secretv1.Password, value string, reason *generateReason) (*corev1.Secret, error) {
	secret := newSecret(password, value, r.Clock.Now())
	// Some clusters allow blockOwnerDeletion only to clients that may change the owner's finalizers.
	if err := ctrl.SetControllerReference(password, secret, r.Scheme, controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return nil, fmt.Errorf("set the owner of Secret %s: %w", secret.Name, err)
	}
	if err := r.Create(ctx, secret); err != nil {
		//workshop:until 5.4d return nil, fmt.Errorf("create Secret %s: %w", client.ObjectKeyFromObject(secret), err)
		//workshop:step 5.4d
		return nil, asRefused(fmt.Errorf("create Secret %s: %w", client.ObjectKeyFromObject(secret), err))
	}
	r.announceSecret(ctx, password, secret, reason)
	return secret, nil
}

// patchSecret changes the Secret to the desired one, and restores the operator's label. If there is a reason, it also
// announces the new password.
//
// A patch contains only the fields that differ, so fields that others have added stay. With the optimistic lock, which
// is the resource version in the patch, the API server refuses a patch that was computed from an old copy: two
// new passwords can't overwrite each other.
//
//workshop:step 5.3c
func (r *PasswordReconciler) patchSecret(ctx context.Context, password *secretv1.Password, found, desired *corev1.Secret, reason *generateReason) (*corev1.Secret, error) {
	metav1.SetMetaDataLabel(&desired.ObjectMeta, managedByLabel, controllerName)
	if equality.Semantic.DeepEqual(found, desired) {
		return found, nil
	}
	if err := r.Patch(ctx, desired, client.MergeFromWithOptions(found, client.MergeFromWithOptimisticLock{})); err != nil {
		//workshop:until 5.4d return found, fmt.Errorf("patch Secret %s: %w", client.ObjectKeyFromObject(found), err)
		//workshop:step 5.4d
		return found, asRefused(fmt.Errorf("patch Secret %s: %w", client.ObjectKeyFromObject(found), err))
	}
	r.announceSecret(ctx, password, desired, reason)
	return desired, nil
}

// announceSecret records an event and a log line about a new password. If the reason is nil, there is no new password.
func (r *PasswordReconciler) announceSecret(ctx context.Context, password *secretv1.Password, secret *corev1.Secret, reason *generateReason) {
	if reason == nil {
		return
	}
	r.Recorder.Eventf(password, secret, reason.eventType, reason.event, actionReconcile, "New password in Secret %q: %s", secret.Name, reason.message)
	logf.FromContext(ctx).Info("Wrote a new password", "secret", secret.Name, "reason", reason.event)
}

// findBlocker returns why the Password can't use the Secret, or nil if it can or if there is no Secret. The operator
// never changes a Secret that the Password does not control, because something else may depend on it.
//
//workshop:step 5.2c
func findBlocker(password *secretv1.Password, secret *corev1.Secret) *blockedError {
	if secret == nil {
		return nil
	}
	owner := metav1.GetControllerOf(secret)
	controlled := owner != nil && owner.UID == password.UID
	// A namespace has only one Password of this name at a time. So if the owner is a Password of this name, but has a
	// different UID, it has been deleted, and the garbage collector will soon delete this Secret.
	leftover := !controlled && isPassword(owner) && owner.Name == password.Name
	switch {
	case leftover, controlled && secret.DeletionTimestamp != nil:
		return &blockedError{
			reason:  secretv1.ReasonReplacing,
			message: fmt.Sprintf("Secret %q is being removed; a new one follows", secret.Name),
		}
	case !controlled:
		return &blockedError{
			reason:  secretv1.ReasonNameTaken,
			message: fmt.Sprintf("Secret %q exists and is not managed by this Password: delete it, or make another Password with another spec.secretName", secret.Name),
		}
	}
	return nil
}

// isPassword reports whether the owner is a Password, in any version of the API: an owner reference
// keeps the version with which it was written.
//
//workshop:step 5.2c
func isPassword(owner *metav1.OwnerReference) bool {
	ours := schema.GroupKind{Group: secretv1.SchemeGroupVersion.Group, Kind: "Password"}
	return owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == ours
}

//workshop:step 5.2b
func newSecret(password *secretv1.Password, value string, now time.Time) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: password.Namespace, Name: password.EffectiveSecretName(), Labels: ownLabels()},
		Type:       corev1.SecretTypeOpaque,
	}
	//workshop:until 5.3a secret.Data = map[string][]byte{secretv1.PasswordKey: []byte(value)}
	//workshop:step 5.3a
	sign(secret, password.Spec.Policy, value, now)
	return secret
}

// impossible returns a blockedError about a spec that can't be met.
//
//workshop:step 5.4c
func impossible(problems field.ErrorList) error {
	return &blockedError{reason: secretv1.ReasonImpossible, message: problems.ToAggregate().Error()}
}

// asRefused turns a refusal by the API server into a blockedError. A refusal is Forbidden, Invalid, BadRequest
// or RequestEntityTooLarge, unless the namespace is being deleted. No event announces that a quota or a policy has
// changed, so the blockedError asks for a retry with backoff. asRefused returns any other error unchanged.
func asRefused(err error) error {
	//workshop:step 5.4d A refusal blocks the Password.
	refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
	//workshop:until 5.4d return err
	//workshop:step 5.4d
	if !refused || isNamespaceTerminating(err) {
		return err
	}
	//workshop:step 5.4d
	return &blockedError{
		reason:  secretv1.ReasonRefused,
		message: fmt.Sprintf("the API server refuses the Secret: %v", err),
		retry:   err,
	}
}

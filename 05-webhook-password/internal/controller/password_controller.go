// Package controller reconciles Passwords. For each Password, it maintains a Secret
// with a generated password, and reports the result in the Password's status. No log,
// event, status or error ever contains a password.
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

const (
	// managedByLabel marks the operator's Secrets.
	managedByLabel = "app.kubernetes.io/managed-by"
	// controllerName identifies the operator in logs and metrics, and in the labels of its Secrets.
	controllerName = "password-operator"
	// reconcileTimeout bounds one call to Reconcile. It is shorter than the timeout of the
	// manager's graceful shutdown, so a call that has begun can finish.
	reconcileTimeout = 15 * time.Second
	// If someone else's Secret has the name that a Password needs, no event tells the operator to try again when that
	// Secret is deleted: the operator watches only Secrets with its label, and an event about one of them concerns only
	// the Password that controls it. So the operator polls: each time, it waits for as long as Ready has been False so
	// far, within these bounds.
	minBlockedDelay, maxBlockedDelay = time.Second, 5 * time.Minute
)

// PasswordReconciler reconciles Passwords.
type PasswordReconciler struct {
	// Client reads from the cache, whose only Secrets are those with the operator's label. APIReader reads from the API
	// server.
	client.Client
	APIReader client.Reader
	Scheme    *runtime.Scheme
	Recorder  events.EventRecorder
	// Clock is the clock for rotations and delays. Tests replace it.
	Clock clock.PassiveClock
}

//workshop:until 5.4e // This marker allows more than is needed. Step 5.4e replaces it with markers beside the code that needs them.
//workshop:until 5.4e // +kubebuilder:rbac:groups="";events.k8s.io;secret.example.com,resources=events;passwords;passwords/status;secrets,verbs=*
//workshop:markers 5.4e
// +kubebuilder:rbac:groups=secret.example.com,resources=passwords,verbs=list;watch

// Reconcile brings one Password up to date. It writes only the differences, and may
// be called any number of times.
//
//workshop:step 5.2a
func (r *PasswordReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// The manager cancels ctx when it stops, but a call that has begun should finish.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileTimeout)
	defer cancel()

	password := &secretv1.Password{}
	if err := r.Get(ctx, request.NamespacedName, password); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !password.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector removes the Secret after the Password
	}
	//workshop:until 5.4b _, err := r.ensureSecret(ctx, password)
	//workshop:step 5.4b
	secret, err := r.ensureSecret(ctx, password)
	//workshop:step 5.2b
	if isNamespaceTerminating(err) {
		return ctrl.Result{}, nil // the Password will be deleted as well
	}
	//workshop:until 5.4b return ctrl.Result{}, err
	//workshop:step 5.4b
	blocked, isBlocked := errors.AsType[*blockedError](err)
	//workshop:step 5.4b
	if err != nil && !isBlocked {
		return ctrl.Result{}, err
	}
	//workshop:step 5.4b
	if err := r.updateStatus(ctx, password, secret, blocked); err != nil {
		return ctrl.Result{}, err
	}
	//workshop:between 5.4b 5.4c if isBlocked { return ctrl.Result{}, blocked }
	//workshop:step 5.4c
	if isBlocked {
		return r.requeueBlocked(password, blocked)
	}
	//workshop:step 5.4b
	return ctrl.Result{RequeueAfter: r.untilRotation(password)}, nil
}

// requeueBlocked tells controller-runtime when to reconcile a blocked Password again. It needs the condition Ready,
// which updateStatus has set.
//
//	reason                    when
//	Impossible, NameChanged   at the next event, when the spec or the former Secret changes (TerminalError)
//	Refused                   with backoff, because no event announces that a quota or a policy has changed
//	NameTaken, Replacing      after a time that grows from minBlockedDelay to maxBlockedDelay
//
//workshop:step 5.4c
func (r *PasswordReconciler) requeueBlocked(password *secretv1.Password, blocked *blockedError) (ctrl.Result, error) {
	switch {
	case blocked.reason == secretv1.ReasonImpossible, blocked.reason == secretv1.ReasonNameChanged:
		return ctrl.Result{}, reconcile.TerminalError(blocked)
	case blocked.retry != nil:
		return ctrl.Result{}, blocked.retry
	}
	since := meta.FindStatusCondition(password.Status.Conditions, secretv1.ConditionReady).LastTransitionTime
	return ctrl.Result{RequeueAfter: min(max(r.Clock.Since(since.Time), minBlockedDelay), maxBlockedDelay)}, nil
}

// untilRotation returns the time until the next rotation, or a nanosecond if that is due already. For a Password
// without rotation, it returns 0, which means never.
//
//workshop:step 5.4b
func (r *PasswordReconciler) untilRotation(password *secretv1.Password) time.Duration {
	next := password.Status.NextRotation
	if next == nil {
		return 0
	}
	return max(next.Sub(r.Clock.Now()), time.Nanosecond)
}

// isNamespaceTerminating reports whether a create was refused because the namespace is being deleted.
func isNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// blockedError is the reason why the operator can't give a Password the Secret that its spec asks for. The condition
// Ready reports it.
type blockedError struct {
	reason, message string
	// retry is the error that Reconcile returns, so that controller-runtime retries with backoff. It is nil for reasons
	// that are handled differently.
	retry error
}

// Error implements error.
func (b *blockedError) Error() string { return fmt.Sprintf("%s: %s", b.reason, b.message) }

// SetupWithManager makes the manager call Reconcile when a Password or its Secret changes.
func (r *PasswordReconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	// Without the CRD, the manager would wait two minutes for its cache.
	kind := secretv1.SchemeGroupVersion.WithKind("Password")
	if _, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return fmt.Errorf("find the kind Password: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WithOptions(options).
		For(&secretv1.Password{}).
		Owns(&corev1.Secret{}). //workshop:step 5.2b
		Complete(r)
}

// CacheByObject limits the Secrets in the manager's cache to those with the operator's label. The API server sends no
// others.
//
//workshop:step 5.3d
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Label: labels.SelectorFromSet(ownLabels())},
	}
}

func ownLabels() labels.Set {
	return labels.Set{managedByLabel: controllerName}
}

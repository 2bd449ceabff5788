// Package controller brings Passwords up to date: for each it keeps a Secret
// with a generated password, and reports in the Password's status. No password
// is ever part of a log, an event, a status or an error.
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

const (
	// controllerName is in logs, metrics and events, and on everything that the operator makes.
	controllerName = "password-operator"
	// reconcileTimeout bounds one call of Reconcile. It is shorter than the
	// manager's graceful shutdown, so that a call which has begun can end.
	reconcileTimeout = 15 * time.Second
	// No event tells when somebody else's Secret is gone, for the cache does not hold it.
	// Looking again waits as long as it has been in the way already, within these bounds.
	minObstacleDelay, maxObstacleDelay = time.Second, 5 * time.Minute
)

// PasswordReconciler brings Passwords up to date.
type PasswordReconciler struct {
	// Client reads from the cache, which holds the operator's own Secrets only; APIReader reads from the API server.
	client.Client
	APIReader client.Reader
	Scheme    *runtime.Scheme
	Recorder  events.EventRecorder
	// Clock tells when a password is due.
	Clock clock.PassiveClock
}

// +kubebuilder:rbac:groups=secret.example.com,resources=passwords,verbs=list;watch

// Reconcile brings one Password up to date. It writes only what differs, and may
// be called any number of times.
func (r *PasswordReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// The manager's end cancels ctx. What has begun is finished all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileTimeout)
	defer cancel()

	password := &secretv1.Password{}
	if err := r.Get(ctx, request.NamespacedName, password); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !password.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector removes the Secret
	}
	result, err := r.reconcile(ctx, password)
	if isNamespaceGoing(err) {
		return ctrl.Result{}, nil
	}
	return result, err
}

func (r *PasswordReconciler) reconcile(ctx context.Context, password *secretv1.Password) (ctrl.Result, error) {
	secret, err := r.applySecret(ctx, password)
	obstacle, obstructed := errors.AsType[*obstacle](err)
	if err != nil && !obstructed {
		return ctrl.Result{}, err
	}
	if err := r.updateStatus(ctx, password, secret, obstacle); err != nil {
		return ctrl.Result{}, err
	}
	if obstructed {
		return r.afterObstacle(password, obstacle)
	}
	return ctrl.Result{RequeueAfter: r.untilRotation(password)}, nil
}

// afterObstacle says when to try again.
func (r *PasswordReconciler) afterObstacle(password *secretv1.Password, obstacle *obstacle) (ctrl.Result, error) {
	switch {
	case obstacle.reason == secretv1.ReasonImpossible, obstacle.reason == secretv1.ReasonNameChanged:
		return ctrl.Result{}, reconcile.TerminalError(obstacle) // never, until the spec changes, or a Secret goes
	case obstacle.cause != nil:
		return ctrl.Result{}, obstacle.cause
	}
	since := meta.FindStatusCondition(password.Status.Conditions, secretv1.ConditionReady).LastTransitionTime
	return ctrl.Result{RequeueAfter: min(max(r.Clock.Since(since.Time), minObstacleDelay), maxObstacleDelay)}, nil
}

// untilRotation is 0, which means never, for a Password without rotation.
func (r *PasswordReconciler) untilRotation(password *secretv1.Password) time.Duration {
	next := password.Status.NextRotation
	if next == nil {
		return 0
	}
	return max(next.Sub(r.Clock.Now()), time.Nanosecond)
}

// isNamespaceGoing tells whether a create came too late: the Password is about to be deleted as well.
func isNamespaceGoing(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// obstacle is why a Password can't have its Secret now, in the words of its condition.
type obstacle struct {
	reason, message string
	// cause is the error that is worth another try as an error; nil if there is none.
	cause error
}

// Error makes an obstacle an error, so that it ends what it stands in the way of.
func (o *obstacle) Error() string { return fmt.Sprintf("%s: %s", o.reason, o.message) }

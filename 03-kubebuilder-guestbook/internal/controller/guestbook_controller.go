// Package controller brings Guestbooks up to date: for each it keeps a
// Deployment and a Service, and reports in the Guestbook's status.
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

const (
	// controllerName is in logs, metrics and events, and on everything that the controller makes.
	controllerName = "guestbook-controller"
	// reconcileTimeout bounds one call of Reconcile. It is shorter than the
	// manager's graceful shutdown, so that a call which has begun can end.
	reconcileTimeout = 15 * time.Second
	// retryDelay is how long a reconcile waits that came too early: the cache did not show the last write yet.
	retryDelay = 100 * time.Millisecond
)

// GuestbookReconciler brings Guestbooks up to date.
type GuestbookReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups=webapp.my.domain,resources=guestbooks,verbs=list;watch

// Reconcile brings one Guestbook up to date. It reads the cache, writes only
// what differs, and may be called any number of times.
func (r *GuestbookReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// The manager's end cancels ctx. What has begun is finished all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileTimeout)
	defer cancel()

	guestbook := &webappv1.Guestbook{}
	if err := r.Get(ctx, request.NamespacedName, guestbook); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !guestbook.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector removes the children, for they have an owner reference
	}
	err := r.reconcile(ctx, guestbook)
	if isExpected(err) {
		logf.FromContext(ctx).V(1).Info("Trying again", "reason", err.Error())
		return ctrl.Result{RequeueAfter: retryDelay}, nil
	}
	if isNamespaceGoing(err) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, err
}

// reconcile makes the children what the Guestbook asks for, and then reports.
func (r *GuestbookReconciler) reconcile(ctx context.Context, guestbook *webappv1.Guestbook) error {
	revision, deployment, err := r.applyChildren(ctx, guestbook)
	obstacle, obstructed := errors.AsType[*obstacle](err)
	if err != nil && !obstructed {
		return err
	}
	pods, err := r.listPods(ctx, guestbook)
	if err != nil {
		return err
	}
	if obstructed {
		return errors.Join(r.updateStatus(ctx, guestbook, pods, obstacle.condition()), obstacle.cause)
	}
	return r.updateStatus(ctx, guestbook, pods, observedCondition(guestbook, deployment, pods, revision))
}

// isExpected tells whether the error is part of a normal life: the cache lags
// behind, or somebody else was faster. Another try settles it.
func isExpected(err error) bool {
	// Not found can also mean that the API server has no such resource, and then never will.
	gone := apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	return gone || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// isNamespaceGoing tells whether a create came too late: the Guestbook is about to be deleted as well.
func isNamespaceGoing(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// obstacle is why a Guestbook can't have its children now, in the words of its condition.
type obstacle struct {
	reason, message string
	// cause is the error that is worth another try; nil if an event will tell when the obstacle is gone.
	cause error
}

// Error makes an obstacle an error, so that it ends what it stands in the way of.
func (o *obstacle) Error() string { return fmt.Sprintf("%s: %s", o.reason, o.message) }

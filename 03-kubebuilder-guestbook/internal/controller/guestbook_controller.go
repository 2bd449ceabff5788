// Package controller brings Guestbooks up to date: for each it keeps a
// Deployment and a Service, and reports in the Guestbook's status.
package controller

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

const (
	// controllerName is in logs, metrics and events, and on everything that the controller makes.
	controllerName = "guestbook-controller"
	// reconcileTimeout bounds one call of Reconcile. It is shorter than the
	// manager's graceful shutdown, so that a call which has begun can end.
	reconcileTimeout = 15 * time.Second
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
	if isNamespaceGoing(err) {
		return ctrl.Result{}, nil // no retry can succeed, and the Guestbook's own deletion is an event
	}
	return ctrl.Result{}, err
}

// reconcile makes the children what the Guestbook asks for, and then reports. If
// a child is blocked, the status says why; the error, if any, is retried.
func (r *GuestbookReconciler) reconcile(ctx context.Context, guestbook *webappv1.Guestbook) error {
	deployment, obstacle, failed := r.applyChildren(ctx, guestbook)
	if failed != nil && obstacle == nil {
		return failed
	}
	pods, err := r.listPods(ctx, guestbook)
	if err != nil {
		return err
	}
	if obstacle != nil {
		return errors.Join(r.updateStatus(ctx, guestbook, pods, obstacle.condition()), failed)
	}
	return r.updateStatus(ctx, guestbook, pods, observedCondition(guestbook, deployment, pods))
}

// isNamespaceGoing tells whether a create came too late: the Guestbook is about to be deleted as well.
func isNamespaceGoing(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// obstacle says why a child is blocked, as the Guestbook's condition reports it.
type obstacle struct{ reason, message string }

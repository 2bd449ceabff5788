// Package controller brings Memcacheds up to date: for each it keeps a
// Deployment, a headless Service and a PodDisruptionBudget, and reports in the
// Memcached's status.
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

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

const (
	// controllerName is in logs, metrics and events, and on everything that the operator makes.
	controllerName = "memcached-operator"
	// reconcileTimeout bounds one call of Reconcile. It is shorter than the
	// manager's graceful shutdown, so that a call which has begun can end.
	reconcileTimeout = 15 * time.Second
	// retryDelay is how long a reconcile waits that came too early: the cache did not show the last write yet.
	retryDelay = 100 * time.Millisecond
)

// MemcachedReconciler brings Memcacheds up to date.
type MemcachedReconciler struct {
	// Client reads from the cache, APIReader from the API server.
	client.Client
	APIReader client.Reader
	Scheme    *runtime.Scheme
	Recorder  events.EventRecorder
	// Image is that of a Memcached whose spec names none.
	Image string
}

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=list;watch;patch

// Reconcile brings one Memcached up to date. It reads the cache, writes only
// what differs, and may be called any number of times.
func (r *MemcachedReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// The manager's end cancels ctx. What has begun is finished all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileTimeout)
	defer cancel()

	memcached := &cachev1alpha1.Memcached{}
	if err := r.Get(ctx, request.NamespacedName, memcached); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := r.reconcile(ctx, memcached)
	if isExpected(err) {
		logf.FromContext(ctx).V(1).Info("Trying again", "reason", err.Error())
		return ctrl.Result{RequeueAfter: retryDelay}, nil
	}
	if isNamespaceGoing(err) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, err
}

// reconcile says what comes first: a Memcached that is being deleted gets no
// finalizer any more, and one without it gets nothing that would have to be cleaned up.
func (r *MemcachedReconciler) reconcile(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	if !memcached.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, memcached)
	}
	if err := r.addFinalizer(ctx, memcached); err != nil {
		return err
	}
	deployment, err := r.applyChildren(ctx, memcached)
	obstacle, obstructed := errors.AsType[*obstacle](err)
	if err != nil && !obstructed {
		return err
	}
	pods, err := r.listPods(ctx, deployment)
	if err != nil {
		return err
	}
	if err := r.updateStatus(ctx, memcached, findings{deployment: deployment, pods: pods, obstacle: obstacle}); err != nil {
		return err
	}
	if obstructed {
		return obstacle.cause
	}
	return nil
}

// isExpected tells whether the error is part of a normal life: the cache lags
// behind, or somebody else was faster. Another try settles it.
func isExpected(err error) bool {
	// Not found can also mean that the API server has no such resource, and then never will.
	gone := apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	return gone || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// isNamespaceGoing tells whether a create came too late: the Memcached is about to be deleted as well.
func isNamespaceGoing(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// obstacle is why a Memcached can't have its children now, in the words of its conditions.
type obstacle struct {
	reason, message string
	// cause is the error that is worth another try; nil if an event will tell when the obstacle is gone.
	cause error
}

// Error makes an obstacle an error, so that it ends what it stands in the way of.
func (o *obstacle) Error() string { return fmt.Sprintf("%s: %s", o.reason, o.message) }

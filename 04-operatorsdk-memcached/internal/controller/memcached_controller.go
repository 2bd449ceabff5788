// Package controller brings Memcacheds up to date: for each it keeps a
// Deployment, a headless Service and a PodDisruptionBudget, and reports in the
// Memcached's status.
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

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

const (
	// controllerName is in logs, metrics and events, and on everything that the operator makes.
	controllerName = "memcached-operator"
	// reconcileTimeout bounds one call of Reconcile. It is shorter than the
	// manager's graceful shutdown, so that a call which has begun can end.
	reconcileTimeout = 15 * time.Second
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
	// Now is the clock, time.Now outside of tests.
	Now func() time.Time
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
	result, err := r.reconcile(ctx, memcached)
	if isNamespaceGoing(err) {
		return ctrl.Result{}, nil // no retry can succeed, and the Memcached's own deletion is an event
	}
	return result, err
}

// reconcile says what comes first: a Memcached that is being deleted gets no
// finalizer any more, and one without it gets nothing that would have to be
// cleaned up. If a child is blocked, the status says why; the error, if any, is retried.
func (r *MemcachedReconciler) reconcile(ctx context.Context, memcached *cachev1alpha1.Memcached) (ctrl.Result, error) {
	if !memcached.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, memcached)
	}
	if err := r.addFinalizer(ctx, memcached); err != nil {
		return ctrl.Result{}, err
	}
	deployment, obstacle, failed := r.applyChildren(ctx, memcached)
	if failed != nil && obstacle == nil {
		return ctrl.Result{}, failed
	}
	pods, err := r.listPods(ctx, deployment)
	if err != nil {
		return ctrl.Result{}, err
	}
	found := findings{deployment: deployment, pods: pods, obstacle: obstacle, now: r.Now()}
	if err := errors.Join(r.updateStatus(ctx, memcached, found), failed); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: found.lookAgain()}, nil
}

// isNamespaceGoing tells whether a create came too late: the Memcached is about to be deleted as well.
func isNamespaceGoing(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// obstacle says why a child is blocked, as the Memcached's conditions report it.
type obstacle struct{ reason, message string }

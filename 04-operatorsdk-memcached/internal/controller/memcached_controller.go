// Package controller reconciles Memcacheds: for each it keeps a Deployment, a headless Service and, for more than one
// pod, a PodDisruptionBudget, and reports their state in the Memcached's status.
package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

const (
	// controllerName appears in logs and metrics, and in the labels of the children and the pods.
	controllerName = "memcached-operator"
	// actionReconcile is the action in all Events.
	actionReconcile = "Reconcile"
	// reconcileTimeout bounds one call to Reconcile. It is shorter than the manager's
	// graceful shutdown timeout, so that a call that has begun can finish.
	reconcileTimeout = 15 * time.Second
)

// MemcachedReconciler reconciles Memcacheds.
type MemcachedReconciler struct {
	// Client reads from the cache, APIReader from the API server.
	client.Client
	APIReader client.Reader
	Scheme    *runtime.Scheme
	Recorder  events.EventRecorder
	// Image is the image of a Memcached whose spec names none.
	Image string
	// Now is the clock: time.Now, except in unit tests.
	Now func() time.Time
}

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=list;watch;patch

// Reconcile reconciles one Memcached. It writes only the differences, and may be
// called any number of times.
func (r *MemcachedReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// The manager cancels ctx when it stops, but a call that has begun should still finish.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileTimeout)
	defer cancel()

	memcached := &cachev1alpha1.Memcached{}
	if err := r.Get(ctx, request.NamespacedName, memcached); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	result, err := r.reconcile(ctx, memcached)
	if isNamespaceTerminating(err) {
		return ctrl.Result{}, nil // no retry can succeed, and the Memcached's own deletion will cause a watch event
	}
	return result, err
}

// reconcile does the work in order. The deletion comes first, because the API server refuses new finalizers on a
// Memcached that is being deleted. The finalizer comes before the children, so that no deletion can miss them. If a
// child is blocked, or if the API server refuses a deletion, the status says why. After an error, the queue retries the
// request, unless a create failed because the namespace is terminating. The methods of observation, in status.go,
// compute the conditions, and the time until they may change without a watch event.
func (r *MemcachedReconciler) reconcile(ctx context.Context, memcached *cachev1alpha1.Memcached) (ctrl.Result, error) {
	if !memcached.DeletionTimestamp.IsZero() {
		err := r.finalize(ctx, memcached)
		if blocker := refusal("deletion", err); blocker != nil {
			err = errors.Join(r.updateStatus(ctx, memcached, refusedStatus(memcached, blocker)), err)
		}
		return ctrl.Result{}, err
	}
	if err := r.addFinalizer(ctx, memcached); err != nil {
		return ctrl.Result{}, err
	}
	deployment, blocker, failed := r.applyChildren(ctx, memcached)
	if failed != nil && blocker == nil {
		return ctrl.Result{}, failed
	}
	pods, err := r.listPods(ctx, memcached)
	if err != nil {
		return ctrl.Result{}, err
	}
	observed := observation{deployment: deployment, pods: podsOf(deployment, pods), blocker: blocker, now: r.Now()}
	if err := errors.Join(r.updateStatus(ctx, memcached, newStatus(memcached, observed)), failed); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: observed.requeueAfter()}, nil
}

//workshop:markers 4.13
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// listPods returns the pods with the Memcached's labels, terminating or not: a deletion waits for both.
func (r *MemcachedReconciler) listPods(ctx context.Context, memcached *cachev1alpha1.Memcached) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := r.List(ctx, pods, client.InNamespace(memcached.Namespace), client.MatchingLabels(selectorLabels(memcached)))
	if err != nil {
		return nil, fmt.Errorf("list the pods of Memcached %s: %w", client.ObjectKeyFromObject(memcached), err)
	}
	return pods.Items, nil
}

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// updateStatus patches the status if it changes, and emits Events about the changes.
//
// The lock, which is the resource version in the patch, makes the API server
// refuse a status that was computed from a stale Memcached, even if the cache only
// lacks our own last write.
func (r *MemcachedReconciler) updateStatus(ctx context.Context, memcached *cachev1alpha1.Memcached, status *cachev1alpha1.MemcachedStatus) error {
	if equality.Semantic.DeepEqual(&memcached.Status, status) {
		return nil
	}
	before := memcached.DeepCopy()
	memcached.Status = *status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, memcached, patch); err != nil {
		return fmt.Errorf("patch the status of Memcached %s: %w", client.ObjectKeyFromObject(memcached), err)
	}
	r.announce(memcached, before.Status.Conditions, status.Conditions)
	return nil
}

// announce emits an Event if Available or Degraded has become true, or is true for a new reason.
// Resyncs and restarts alone change no conditions, so they cause no Events.
func (r *MemcachedReconciler) announce(memcached *cachev1alpha1.Memcached, before, after []metav1.Condition) {
	for _, condition := range after {
		last := meta.FindStatusCondition(before, condition.Type)
		unchanged := last != nil && last.Status == condition.Status && last.Reason == condition.Reason
		announced := []string{cachev1alpha1.ConditionAvailable, cachev1alpha1.ConditionDegraded}
		if unchanged || condition.Status != metav1.ConditionTrue || !slices.Contains(announced, condition.Type) {
			continue
		}
		eventType := corev1.EventTypeNormal
		if condition.Type == cachev1alpha1.ConditionDegraded {
			eventType = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(memcached, nil, eventType, condition.Reason, actionReconcile, "%s", condition.Message)
	}
}

// isNamespaceTerminating reports whether a create failed because the namespace is being deleted, and the
// Memcached with it.
func isNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// Package controller reconciles Guestbooks. For each Guestbook, it maintains a
// Deployment and a Service, and reports their state in the Guestbook's status.
package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	//workshop:until 3.5f logf "sigs.k8s.io/controller-runtime/pkg/log"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

const (
	// controllerName appears in logs and metrics, and in the labels of the children and the pods.
	controllerName = "guestbook-controller"
	// actionReconcile is the action in all Events.
	actionReconcile = "Reconcile"
	// reconcileTimeout bounds one call to Reconcile. It is shorter than the manager's
	// graceful shutdown timeout, so a call that has begun can finish.
	reconcileTimeout = 15 * time.Second
)

// GuestbookReconciler reconciles Guestbooks.
type GuestbookReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder events.EventRecorder
}

//workshop:until 3.8 // This allows far more than the controller needs. In step 3.8 you replace it with markers beside the code that needs them.
//workshop:until 3.8 // +kubebuilder:rbac:groups="";apps;events.k8s.io;webapp.my.domain,resources=configmaps;deployments;events;guestbooks;guestbooks/finalizers;guestbooks/status;pods;services,verbs=*
//workshop:markers 3.8
// +kubebuilder:rbac:groups=webapp.my.domain,resources=guestbooks,verbs=list;watch

// Reconcile reconciles one Guestbook. It reads from the cache, writes only what
// differs, and may be called any number of times.
//
//workshop:step 3.5a
func (r *GuestbookReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	//workshop:step 3.7b
	// The manager cancels ctx when it stops, but a call that has begun must finish.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileTimeout)
	//workshop:step 3.7b
	defer cancel()

	guestbook := &webappv1.Guestbook{}
	if err := r.Get(ctx, request.NamespacedName, guestbook); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !guestbook.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector deletes the children, which have an owner reference
	}
	//workshop:until 3.5f logf.FromContext(ctx).Info("Reconciling", "size", guestbook.Spec.Size)
	err := r.reconcile(ctx, guestbook)
	//workshop:step 3.5h
	if isNamespaceTerminating(err) {
		return ctrl.Result{}, nil // no retry can succeed, and the Guestbook's own deletion will cause a watch event
	}
	return ctrl.Result{}, err
}

// reconcile creates or patches the children, and writes the status. If a child
// is blocked, the status says why. If there is an error but no blocker, the status
// stays as it is. After an error, the queue retries the request, unless a create failed because the namespace is
// terminating.
//
//workshop:step 3.5f
func (r *GuestbookReconciler) reconcile(ctx context.Context, guestbook *webappv1.Guestbook) error {
	deployment, blocker, err := r.applyChildren(ctx, guestbook)
	if err != nil && blocker == nil {
		return err
	}
	return errors.Join(r.report(ctx, guestbook, deployment, blocker), err)
}

// report observes the pods, and writes the status. The condition says why a child is blocked or, if none is,
// whether the pods serve the page.
//
//workshop:step 3.5m
func (r *GuestbookReconciler) report(ctx context.Context, guestbook *webappv1.Guestbook, deployment *appsv1.Deployment, blocker *explanation) error {
	pods, err := r.listPods(ctx, guestbook)
	if err != nil {
		return err
	}
	if blocker != nil {
		return r.updateStatus(ctx, guestbook, pods, blocker.condition())
	}
	return r.updateStatus(ctx, guestbook, pods, observedCondition(guestbook, deployment, pods))
}

//workshop:markers 3.8
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// listPods returns the Guestbook's pods without those that are terminating or have finished.
//
//workshop:step 3.5k
func (r *GuestbookReconciler) listPods(ctx context.Context, guestbook *webappv1.Guestbook) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := r.List(ctx, pods, client.InNamespace(guestbook.Namespace), client.MatchingLabels(selectorLabels(guestbook)))
	if err != nil {
		return nil, fmt.Errorf("list the pods of Guestbook %s: %w", client.ObjectKeyFromObject(guestbook), err)
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return isTerminating(&pod) }), nil
}

//workshop:markers 3.8
// +kubebuilder:rbac:groups=webapp.my.domain,resources=guestbooks/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// updateStatus patches the status if it has changed, and then announces the condition if its reason is new.
//
// The lock, which is the resource version in the patch, makes the API server refuse
// a status that was computed from a stale Guestbook, even if all that the cache lacks is
// the last status that this controller has written.
//
//workshop:step 3.5m
func (r *GuestbookReconciler) updateStatus(ctx context.Context, guestbook *webappv1.Guestbook, pods []corev1.Pod, ready metav1.Condition) error {
	status := newStatus(guestbook, pods, ready)
	if equality.Semantic.DeepEqual(&guestbook.Status, status) {
		return nil
	}
	before := guestbook.DeepCopy()
	guestbook.Status = *status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, guestbook, patch); err != nil {
		return fmt.Errorf("patch the status of Guestbook %s: %w", client.ObjectKeyFromObject(guestbook), err)
	}
	r.announce(guestbook, before.Status.Conditions, ready) //workshop:step 3.5n
	return nil
}

// announce emits an Event if the condition's reason has changed, unless the new one is Progressing.
// Resyncs and restarts don't change the reason, so they cause no Event.
//
//workshop:step 3.5n
func (r *GuestbookReconciler) announce(guestbook *webappv1.Guestbook, before []metav1.Condition, ready metav1.Condition) {
	last := meta.FindStatusCondition(before, webappv1.ConditionReady)
	if ready.Reason == webappv1.ReasonProgressing || last != nil && last.Reason == ready.Reason {
		return
	}
	eventType := corev1.EventTypeWarning
	if ready.Status == metav1.ConditionTrue {
		eventType = corev1.EventTypeNormal
	}
	r.Recorder.Eventf(guestbook, nil, eventType, ready.Reason, actionReconcile, "%s", ready.Message)
}

// isNamespaceTerminating reports whether a create failed because the namespace is being deleted. The Guestbook will
// soon be deleted with it.
//
//workshop:step 3.5h
func isNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

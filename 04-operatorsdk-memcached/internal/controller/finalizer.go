package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// Reasons of the Events that report the progress of a deletion.
const (
	eventStopping = "Stopping"
	eventStopped  = "Stopped"
)

//workshop:markers 4.13
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;delete

// addFinalizer makes a deletion wait for finalize. Call it before you create anything
// that finalize must clean up.
//
//workshop:step 4.8a
func (r *MemcachedReconciler) addFinalizer(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	return r.patchFinalizers(ctx, memcached, func() bool { return controllerutil.AddFinalizer(memcached, cachev1alpha1.Finalizer) })
}

// finalize cleans up after a Memcached that is being deleted, and removes the finalizer when nothing is left to wait
// for. It may be called any number of times. The Service and the PodDisruptionBudget are left to the garbage collector,
// which follows their owner references.
//
//workshop:step 4.8b
func (r *MemcachedReconciler) finalize(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	if !controllerutil.ContainsFinalizer(memcached, cachev1alpha1.Finalizer) {
		return nil // the Memcached waits for another controller's finalizer
	}
	//workshop:step 4.8d
	if controllerutil.ContainsFinalizer(memcached, metav1.FinalizerOrphanDependents) {
		return r.removeFinalizer(ctx, memcached, "The children stay, without an owner") // kubectl delete --cascade=orphan
	}
	//workshop:step 4.8d
	if left, err := r.endPods(ctx, memcached); left || err != nil {
		return err // when the rest is gone, a watch event queues the Memcached again
	}
	return r.removeFinalizer(ctx, memcached, "All pods are gone")
}

// endPods deletes the Memcached's Deployment. It reports whether the Deployment or one of its pods is left.
//
//workshop:step 4.8d
func (r *MemcachedReconciler) endPods(ctx context.Context, memcached *cachev1alpha1.Memcached) (left bool, err error) {
	deployment := &appsv1.Deployment{}
	// Don't read the cache: if it doesn't show the Deployment yet, the deletion might not wait for the pods.
	err = r.APIReader.Get(ctx, client.ObjectKeyFromObject(memcached), deployment)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get Deployment %s: %w", client.ObjectKeyFromObject(memcached), err)
	}
	if ownDeployment(memcached, deployment) != nil {
		return true, r.deleteDeployment(ctx, memcached, deployment)
	}
	if err == nil {
		return false, nil // the Deployment is someone else's, and so are the pods with these labels
	}
	// Pods outlive their Deployment if someone else has deleted it in the background.
	pods, err := r.listPods(ctx, memcached)
	return len(pods) > 0, err
}

// removeFinalizer removes the finalizer, and emits an Event with the message. The API server deletes the Memcached when
// it has no finalizers left.
//
//workshop:step 4.8b
func (r *MemcachedReconciler) removeFinalizer(ctx context.Context, memcached *cachev1alpha1.Memcached, message string) error {
	err := r.patchFinalizers(ctx, memcached, func() bool { return controllerutil.RemoveFinalizer(memcached, cachev1alpha1.Finalizer) })
	if err != nil {
		return err
	}
	r.Recorder.Eventf(memcached, nil, corev1.EventTypeNormal, eventStopped, actionReconcile, "%s", message)
	return nil
}

// deleteDeployment deletes the Deployment and emits an Event, unless the Deployment is
// already being deleted, or gone. With foreground deletion, the Deployment exists until its last
// pod is gone. The precondition makes the API server refuse the request if another Deployment has
// taken the name in the meantime.
//
//workshop:step 4.8c
func (r *MemcachedReconciler) deleteDeployment(ctx context.Context, memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment) error {
	if deployment.DeletionTimestamp != nil {
		return nil
	}
	err := r.Delete(ctx, deployment, client.Preconditions{UID: &deployment.UID}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if apierrors.IsNotFound(err) {
		return nil // someone else has just deleted it, and the watch event for that deletion queues the Memcached again
	}
	if err != nil {
		return fmt.Errorf("delete Deployment %s: %w", client.ObjectKeyFromObject(deployment), err)
	}
	r.Recorder.Eventf(memcached, deployment, corev1.EventTypeNormal, eventStopping, actionReconcile, "Deleting Deployment %q and its pods", deployment.Name)
	return nil
}

// patchFinalizers writes the finalizers if change reports that it has changed
// the list. A merge patch replaces the whole list. The lock makes the API server refuse
// the patch if the list is stale.
//
//workshop:step 4.8a
func (r *MemcachedReconciler) patchFinalizers(ctx context.Context, memcached *cachev1alpha1.Memcached, change func() bool) error {
	before := memcached.DeepCopy()
	if !change() {
		return nil
	}
	if err := r.Patch(ctx, memcached, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch the finalizers of Memcached %s: %w", client.ObjectKeyFromObject(memcached), err)
	}
	return nil
}

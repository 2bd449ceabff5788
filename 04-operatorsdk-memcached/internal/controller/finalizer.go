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

// Reasons of the Events of a deletion.
const (
	eventStopping = "Stopping"
	eventStopped  = "Stopped"
)

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;delete

// addFinalizer makes a deletion wait for finalize. It comes before the creation of
// anything that finalize must clean up.
func (r *MemcachedReconciler) addFinalizer(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	return r.patchFinalizers(ctx, memcached, func() bool { return controllerutil.AddFinalizer(memcached, cachev1alpha1.Finalizer) })
}

// finalize deletes the Deployment of a Memcached that is being deleted, and removes
// the finalizer when no pod is left. It may be called any number of times. The garbage
// collector deletes the Service and the PodDisruptionBudget, which have an owner reference.
func (r *MemcachedReconciler) finalize(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	if !controllerutil.ContainsFinalizer(memcached, cachev1alpha1.Finalizer) {
		return nil // the Memcached waits for another controller's finalizer
	}
	if controllerutil.ContainsFinalizer(memcached, metav1.FinalizerOrphanDependents) {
		return r.removeFinalizer(ctx, memcached, "The children stay, without an owner") // kubectl delete --cascade=orphan
	}
	deployment := &appsv1.Deployment{}
	// Not from the cache: a Deployment that it does not show yet would never be cleaned up.
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(memcached), deployment)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get Deployment %s: %w", client.ObjectKeyFromObject(memcached), err)
	}
	if ownDeployment(memcached, deployment) != nil {
		return r.deleteDeployment(ctx, memcached, deployment) // the watch event of its deletion queues the Memcached again
	}
	if apierrors.IsNotFound(err) { // else the Deployment is not the Memcached's, and nor are the pods with its labels
		// Pods outlive their Deployment if someone else has deleted it in the background.
		if pods, err := r.listPods(ctx, memcached); len(pods) > 0 || err != nil {
			return err // the watch event of a pod's deletion queues the Memcached again
		}
	}
	return r.removeFinalizer(ctx, memcached, "All pods are gone")
}

// removeFinalizer lets the API server delete the Memcached, and emits an Event with that message.
func (r *MemcachedReconciler) removeFinalizer(ctx context.Context, memcached *cachev1alpha1.Memcached, message string) error {
	err := r.patchFinalizers(ctx, memcached, func() bool { return controllerutil.RemoveFinalizer(memcached, cachev1alpha1.Finalizer) })
	if err != nil {
		return err
	}
	r.Recorder.Eventf(memcached, nil, corev1.EventTypeNormal, eventStopped, actionReconcile, "%s", message)
	return nil
}

// deleteDeployment deletes the Deployment in the foreground, so that it exists until its
// last pod is gone. The precondition makes the API server refuse if the name has meanwhile
// passed to another Deployment.
func (r *MemcachedReconciler) deleteDeployment(ctx context.Context, memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment) error {
	if deployment.DeletionTimestamp != nil {
		return nil
	}
	err := r.Delete(ctx, deployment, client.Preconditions{UID: &deployment.UID}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if err != nil {
		return fmt.Errorf("delete Deployment %s: %w", client.ObjectKeyFromObject(deployment), err)
	}
	r.Recorder.Eventf(memcached, deployment, corev1.EventTypeNormal, eventStopping, actionReconcile, "Deleting Deployment %q and its pods", deployment.Name)
	return nil
}

// patchFinalizers writes the finalizers if change reports that it has changed
// them. A merge patch replaces the whole list, so the lock makes the API server
// refuse a stale one.
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

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

// Reasons of the events of a deletion.
const (
	eventStopping = "Stopping"
	eventStopped  = "Stopped"
)

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;delete

// addFinalizer makes a deletion wait for finalize. It comes before anything is
// made that finalize has to clean up.
func (r *MemcachedReconciler) addFinalizer(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	return r.patchFinalizers(ctx, memcached, func() bool { return controllerutil.AddFinalizer(memcached, cachev1alpha1.Finalizer) })
}

// finalize ends the pods of a Memcached that is being deleted, and lets go of it
// when none is left. It may be called any number of times. The Service and the
// PodDisruptionBudget have an owner reference and go with the Memcached.
func (r *MemcachedReconciler) finalize(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	if !controllerutil.ContainsFinalizer(memcached, cachev1alpha1.Finalizer) {
		return nil // somebody else's finalizer holds it
	}
	if controllerutil.ContainsFinalizer(memcached, metav1.FinalizerOrphanDependents) {
		return r.letGo(ctx, memcached) // kubectl delete --cascade=orphan: the children are to stay, without an owner
	}
	deployment := &appsv1.Deployment{}
	// Not from the cache: what it does not show yet would never be cleaned up.
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(memcached), deployment)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get Deployment %s: %w", client.ObjectKeyFromObject(memcached), err)
	}
	if ownDeployment(memcached, deployment) != nil {
		return r.stop(ctx, memcached, deployment) // the event of the Deployment's end brings us here again
	}
	if apierrors.IsNotFound(err) { // otherwise the pods are those of somebody else's Deployment
		if left, err := r.hasPods(ctx, memcached); left || err != nil {
			return err // the event of a pod's end brings us here again
		}
	}
	return r.letGo(ctx, memcached)
}

// letGo removes the finalizer, and says that there is nothing more to wait for.
func (r *MemcachedReconciler) letGo(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	err := r.patchFinalizers(ctx, memcached, func() bool { return controllerutil.RemoveFinalizer(memcached, cachev1alpha1.Finalizer) })
	if err != nil {
		return err
	}
	r.Recorder.Eventf(memcached, nil, corev1.EventTypeNormal, eventStopped, actionReconcile, "No pod is left that belongs to it")
	return nil
}

// hasPods tells whether a pod is left, ending or not. That can be after the end of the
// Deployment too: if somebody else has deleted it, its pods end after it.
func (r *MemcachedReconciler) hasPods(ctx context.Context, memcached *cachev1alpha1.Memcached) (bool, error) {
	pods := &corev1.PodList{}
	err := r.List(ctx, pods, client.InNamespace(memcached.Namespace), client.MatchingLabels(selectorLabels(memcached)))
	if err != nil {
		return false, fmt.Errorf("list the pods of Memcached %s: %w", client.ObjectKeyFromObject(memcached), err)
	}
	return len(pods.Items) > 0, nil
}

// stop deletes the Deployment in the foreground: it goes after the last of its
// pods. The precondition makes the API server refuse to delete another one that
// meanwhile has its name.
func (r *MemcachedReconciler) stop(ctx context.Context, memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment) error {
	if deployment.DeletionTimestamp != nil {
		return nil
	}
	err := r.Delete(ctx, deployment, client.Preconditions{UID: &deployment.UID}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if err != nil {
		return fmt.Errorf("delete Deployment %s: %w", client.ObjectKeyFromObject(deployment), err)
	}
	r.Recorder.Eventf(memcached, deployment, corev1.EventTypeNormal, eventStopping, actionReconcile, "Ending the pods of Deployment %q", deployment.Name)
	return nil
}

// patchFinalizers writes the finalizers if change returns that it has changed
// them. They are a list that a merge patch replaces as a whole, so the lock makes
// the API server refuse an outdated one.
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

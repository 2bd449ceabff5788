package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

//workshop:markers 4.13
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch;create;patch;delete

// applyChildren creates or patches the children, and removes the budget if the spec asks for only one pod. If one child
// is blocked or fails, it continues with the others. It returns the Deployment (nil if the Memcached has none), the
// first blocker, and all errors, joined.
func (r *MemcachedReconciler) applyChildren(ctx context.Context, memcached *cachev1alpha1.Memcached) (*appsv1.Deployment, *explanation, error) {
	name := metav1.ObjectMeta{Namespace: memcached.Namespace, Name: memcached.Name}
	deployment := &appsv1.Deployment{ObjectMeta: name}
	service := &corev1.Service{ObjectMeta: name}              //workshop:step 4.9e
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: name} //workshop:step 4.10
	children := []childObject{
		//workshop:step 4.9d
		{"Deployment", deployment, func() { setDeployment(deployment, memcached, r.imageOf(memcached)) }},
		//workshop:step 4.9e
		{"Service", service, func() { setService(service, memcached) }},
	}
	var first *explanation
	var failed []error
	//workshop:step 4.10
	if memcached.Spec.Size > 1 {
		children = append(children, childObject{"PodDisruptionBudget", budget, func() { setBudget(budget, memcached) }})
	}
	for _, child := range children {
		blocker, err := r.apply(ctx, memcached, child)
		first, failed = cmp.Or(first, blocker), append(failed, err)
	}
	//workshop:step 4.10
	if memcached.Spec.Size <= 1 {
		blocker, err := r.removeBudget(ctx, memcached, budget)
		first, failed = cmp.Or(first, blocker), append(failed, err)
	}
	return ownDeployment(memcached, deployment), first, errors.Join(failed...)
}

// ownDeployment returns the Deployment if the Memcached controls it, even while the Deployment is being deleted. If the
// Memcached does not control it, or if there is none, ownDeployment returns nil.
//
//workshop:step 4.8c
func ownDeployment(memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment) *appsv1.Deployment {
	if deployment.UID == "" || !metav1.IsControlledBy(deployment, memcached) {
		return nil
	}
	return deployment
}

// imageOf returns the image in the spec, or the operator's default.
//
//workshop:step 4.9b
func (r *MemcachedReconciler) imageOf(memcached *cachev1alpha1.Memcached) string {
	return cmp.Or(memcached.Spec.Image, r.Image)
}

// removeBudget deletes the budget of a Memcached that asks for one pod: with maxUnavailable: 1, a budget has no effect
// on a single pod. A budget that the Memcached does not control stays. If the API server refuses the deletion,
// removeBudget returns a blocker and an error; for any other error except NotFound, it returns only the error.
//
//workshop:step 4.10
func (r *MemcachedReconciler) removeBudget(ctx context.Context, memcached *cachev1alpha1.Memcached, budget *policyv1.PodDisruptionBudget) (*explanation, error) {
	key := client.ObjectKeyFromObject(budget)
	err := r.Get(ctx, key, budget)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get PodDisruptionBudget %s: %w", key, err)
	}
	if !metav1.IsControlledBy(budget, memcached) || budget.DeletionTimestamp != nil {
		return nil, nil
	}
	err = r.Delete(ctx, budget, client.Preconditions{UID: &budget.UID})
	if client.IgnoreNotFound(err) != nil {
		return refusal("deletion of the PodDisruptionBudget", err), fmt.Errorf("delete PodDisruptionBudget %s: %w", key, err)
	}
	return nil, nil
}

// childObject describes an object that a Memcached should control.
type childObject struct {
	kind string
	// object has only a namespace and a name at first. If it exists, apply reads the rest from the cache.
	object client.Object
	// set sets the operator's fields in object, and leaves all others alone.
	set func()
}

// apply creates the child or, if it exists, patches the fields that child.set changes. If the child can't be created or
// patched:
//
//	                                 blocker   error   the next reconcile
//	someone else's object, or one    yes       no      when a watch event reports its deletion
//	that is being deleted
//	refused by the API server        yes       yes     with backoff: no watch event announces a new quota or policy
//	any other error                  no        yes     with backoff, unless the namespace is terminating
//
// A create fails if the name is in use, even if the cache does not show that yet;
// server-side apply would adopt the object. A patch contains only the fields that
// child.set has changed, so annotations, sidecars and other settings of users stay.
// The lock, which is the resource version in the patch, makes the API server refuse
// a patch that was computed from a stale copy, or from an object that has since been
// deleted and recreated.
func (r *MemcachedReconciler) apply(ctx context.Context, memcached *cachev1alpha1.Memcached, child childObject) (*explanation, error) {
	key := client.ObjectKeyFromObject(child.object)
	err := r.Get(ctx, key, child.object)
	if apierrors.IsNotFound(err) {
		return r.create(ctx, memcached, child)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", child.kind, key, err)
	}
	if blocker := findBlocker(memcached, child); blocker != nil {
		return blocker, nil
	}
	before := child.object.DeepCopyObject().(client.Object)
	child.set()
	if equality.Semantic.DeepEqual(before, child.object) {
		return nil, nil
	}
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, child.object, patch); err != nil {
		return refusal(child.kind, err), fmt.Errorf("patch %s %s: %w", child.kind, key, err)
	}
	logf.FromContext(ctx).Info("Patched", "kind", child.kind)
	return nil, nil
}

// create creates the child with the Memcached as its controlling owner. The results mean the same as those of apply.
func (r *MemcachedReconciler) create(ctx context.Context, memcached *cachev1alpha1.Memcached, child childObject) (*explanation, error) {
	child.set()
	//workshop:until 4.9d if err := ctrl.SetControllerReference(memcached, child.object, r.Scheme); err != nil { return nil, fmt.Errorf("set the owner of %s %s: %w", child.kind, memcached.Name, err) }
	//workshop:step 4.9d
	// blockOwnerDeletion makes an owner that is deleted in the foreground wait for the child. Our finalizer makes it wait
	// for the Deployment and its pods, and it need not wait for the other children. On some distributions, such as
	// OpenShift, the field requires permission to update the owner's finalizers.
	if err := ctrl.SetControllerReference(memcached, child.object, r.Scheme, controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return nil, fmt.Errorf("set the owner of %s %s: %w", child.kind, memcached.Name, err)
	}
	if err := r.Create(ctx, child.object); err != nil {
		// If the cache lags behind, the child may exist already. The retry will see it, and check its owner.
		return refusal(child.kind, err), fmt.Errorf("create %s %s: %w", child.kind, client.ObjectKeyFromObject(child.object), err)
	}
	logf.FromContext(ctx).Info("Created", "kind", child.kind)
	return nil, nil
}

// findBlocker returns why the object that was found can't be the child, or nil if it
// can. An object that the Memcached does not control is never touched: it may be in production.
func findBlocker(memcached *cachev1alpha1.Memcached, child childObject) *explanation {
	owner := metav1.GetControllerOf(child.object)
	controlled := owner != nil && owner.UID == memcached.UID
	// A namespace has only one Memcached of this name at a time. So if the owner is a Memcached of this name, but with
	// another UID, it has been deleted, and the garbage collector will soon delete this object.
	leftover := !controlled && isMemcached(owner) && owner.Name == memcached.Name
	switch {
	case leftover, controlled && child.object.GetDeletionTimestamp() != nil:
		return &explanation{
			reason:  cachev1alpha1.ReasonRollingOut,
			message: fmt.Sprintf("%s %q is being removed; a new one follows", child.kind, memcached.Name),
		}
	case !controlled:
		return &explanation{
			reason:  cachev1alpha1.ReasonNameTaken,
			message: fmt.Sprintf("%s %q exists and is not managed by this Memcached: delete it, or give the Memcached another name", child.kind, memcached.Name),
		}
	}
	return nil
}

// isMemcached reports whether the owner is a Memcached, in any version of the API: an owner reference
// keeps the version with which it was written.
func isMemcached(owner *metav1.OwnerReference) bool {
	ours := schema.GroupKind{Group: cachev1alpha1.SchemeGroupVersion.Group, Kind: "Memcached"}
	return owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == ours
}

// refusal returns a blocker if the API server has refused a request: the request is forbidden, invalid or too large, or
// a webhook denies it and gives no status code. Otherwise, and for a create that is refused because the namespace is
// terminating, refusal returns nil. The message says what was refused: a kind of child, or a deletion.
func refusal(what string, err error) *explanation {
	refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
	if !refused || isNamespaceTerminating(err) {
		return nil
	}
	return &explanation{
		reason:  cachev1alpha1.ReasonRefused,
		message: fmt.Sprintf("the API server refuses the %s: %v", what, err),
	}
}

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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch;create;patch;delete

// applyChildren makes the Memcached's children what they should be. It tries all
// of them, even if one is blocked or fails, and returns the Deployment, nil if the
// Memcached has none, the first obstacle, and the errors that are worth a retry.
func (r *MemcachedReconciler) applyChildren(ctx context.Context, memcached *cachev1alpha1.Memcached) (*appsv1.Deployment, *obstacle, error) {
	name := metav1.ObjectMeta{Namespace: memcached.Namespace, Name: memcached.Name}
	deployment := &appsv1.Deployment{ObjectMeta: name}
	service := &corev1.Service{ObjectMeta: name}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: name}
	children := []child{
		{"Deployment", deployment, func() { setDeployment(deployment, memcached, r.imageOf(memcached)) }},
		{"Service", service, func() { setService(service, memcached) }},
	}
	var first *obstacle
	var failed []error
	if memcached.Spec.Size > 1 {
		children = append(children, child{"PodDisruptionBudget", budget, func() { setBudget(budget, memcached) }})
	} else {
		failed = append(failed, r.removeBudget(ctx, memcached, budget))
	}
	for _, child := range children {
		obstacle, err := r.apply(ctx, memcached, child)
		first, failed = cmp.Or(first, obstacle), append(failed, err)
	}
	return ownDeployment(memcached, deployment), first, errors.Join(failed...)
}

// ownDeployment is the Deployment if the Memcached has it, nil otherwise.
func ownDeployment(memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment) *appsv1.Deployment {
	if deployment.UID == "" || !metav1.IsControlledBy(deployment, memcached) {
		return nil
	}
	return deployment
}

// imageOf is what the Memcached asks for, or the operator's own choice.
func (r *MemcachedReconciler) imageOf(memcached *cachev1alpha1.Memcached) string {
	return cmp.Or(memcached.Spec.Image, r.Image)
}

// removeBudget deletes the budget of a Memcached that has a single pod now: it
// would protect nothing any more.
func (r *MemcachedReconciler) removeBudget(ctx context.Context, memcached *cachev1alpha1.Memcached, budget *policyv1.PodDisruptionBudget) error {
	key := client.ObjectKeyFromObject(budget)
	err := r.Get(ctx, key, budget)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get PodDisruptionBudget %s: %w", key, err)
	}
	if !metav1.IsControlledBy(budget, memcached) || budget.DeletionTimestamp != nil {
		return nil
	}
	if err := r.Delete(ctx, budget, client.Preconditions{UID: &budget.UID}); err != nil {
		return fmt.Errorf("delete PodDisruptionBudget %s: %w", key, err)
	}
	return nil
}

// child is an object that a Memcached controls.
type child struct {
	kind string
	// object holds namespace and name, and after apply the rest.
	object client.Object
	// set gives object the values that the Memcached asks for, and leaves everything else in it alone.
	set func()
}

// apply creates the child, or patches in it what differs from what is wanted. It
// returns why the child is blocked, if it is. Without an error an event tells when
// that ends; nobody tells when a quota or a policy has changed, so a refusal also
// returns the error, and is retried less and less often.
//
// A patch, because it holds nothing but the fields that differ: annotations,
// sidecars and whatever else others have set stays, even if the cache does not
// show it yet. The lock, which is the resource version in the patch, makes the
// API server refuse a patch that was computed from an old copy, or for an object
// that was meanwhile deleted and made anew by somebody else.
func (r *MemcachedReconciler) apply(ctx context.Context, memcached *cachev1alpha1.Memcached, child child) (*obstacle, error) {
	key := client.ObjectKeyFromObject(child.object)
	err := r.Get(ctx, key, child.object)
	if apierrors.IsNotFound(err) {
		return r.create(ctx, memcached, child)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", child.kind, key, err)
	}
	if obstacle := findObstacle(memcached, child); obstacle != nil {
		return obstacle, nil
	}
	before := child.object.DeepCopyObject().(client.Object)
	child.set()
	if equality.Semantic.DeepEqual(before, child.object) {
		return nil, nil
	}
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, child.object, patch); err != nil {
		return refusal(child, err), fmt.Errorf("patch %s %s: %w", child.kind, key, err)
	}
	logf.FromContext(ctx).Info("Patched", "kind", child.kind)
	return nil, nil
}

func (r *MemcachedReconciler) create(ctx context.Context, memcached *cachev1alpha1.Memcached, child child) (*obstacle, error) {
	child.set()
	// Blocking is for owners deleted in the foreground: those wait for the child. Here the finalizer sees to that,
	// and some clusters, such as OpenShift, let nobody block who may not change the owner's finalizers.
	if err := ctrl.SetControllerReference(memcached, child.object, r.Scheme, controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return nil, fmt.Errorf("set the owner of %s %s: %w", child.kind, memcached.Name, err)
	}
	if err := r.Create(ctx, child.object); err != nil {
		// It may exist already, if the cache lags behind. The retry finds out whose it is.
		return refusal(child, err), fmt.Errorf("create %s %s: %w", child.kind, client.ObjectKeyFromObject(child.object), err)
	}
	logf.FromContext(ctx).Info("Created", "kind", child.kind)
	return nil, nil
}

// findObstacle returns why the object found can't become the child, nil if it
// can. One that the Memcached does not control is never touched: it may be
// somebody's production.
func findObstacle(memcached *cachev1alpha1.Memcached, child child) *obstacle {
	owner := metav1.GetControllerOf(child.object)
	controlled := owner != nil && owner.UID == memcached.UID
	// Only one Memcached of a name exists at a time: the owner is a former one, and what it had about to be collected.
	leftover := !controlled && isMemcached(owner) && owner.Name == memcached.Name
	switch {
	case leftover, controlled && child.object.GetDeletionTimestamp() != nil:
		return &obstacle{
			reason:  cachev1alpha1.ReasonRollingOut,
			message: fmt.Sprintf("%s %q is being removed; a new one follows", child.kind, memcached.Name),
		}
	case !controlled:
		return &obstacle{
			reason:  cachev1alpha1.ReasonNameTaken,
			message: fmt.Sprintf("%s %q exists and is not managed by this Memcached: delete it, or give the Memcached another name", child.kind, memcached.Name),
		}
	}
	return nil
}

func isMemcached(owner *metav1.OwnerReference) bool {
	return owner != nil && owner.Kind == "Memcached" && owner.APIVersion == cachev1alpha1.SchemeGroupVersion.String()
}

// refusal returns the obstacle if the API server understood the request and refused it, nil for any other error.
func refusal(child child, err error) *obstacle {
	refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
	if !refused || isNamespaceGoing(err) {
		return nil
	}
	return &obstacle{
		reason:  cachev1alpha1.ReasonRefused,
		message: fmt.Sprintf("the API server refuses the %s: %v", child.kind, err),
	}
}

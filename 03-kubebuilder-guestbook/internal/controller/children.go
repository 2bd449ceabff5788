package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch

// applyChildren makes the Guestbook's Deployment and Service what they should
// be. It returns the revision that the pods should have, and the Deployment; or
// an obstacle if the Guestbook can't have them now.
func (r *GuestbookReconciler) applyChildren(ctx context.Context, guestbook *webappv1.Guestbook) (string, *appsv1.Deployment, error) {
	settings, err := r.getSettings(ctx, guestbook)
	if err != nil {
		return "", nil, err
	}
	revision := newRevision(guestbook, settings)
	name := metav1.ObjectMeta{Namespace: guestbook.Namespace, Name: guestbook.Name}
	deployment := &appsv1.Deployment{ObjectMeta: name}
	service := &corev1.Service{ObjectMeta: name}
	children := []child{
		{"Deployment", deployment, webappv1.ReasonDeploymentTaken, func() { setDeployment(deployment, guestbook, revision) }},
		{"Service", service, webappv1.ReasonServiceTaken, func() { setService(service, guestbook) }},
	}
	for _, child := range children {
		if err := r.apply(ctx, guestbook, child); err != nil {
			return "", nil, err
		}
	}
	return revision, deployment, nil
}

// child is an object that a Guestbook controls.
type child struct {
	kind string
	// object holds namespace and name, and after apply the rest.
	object client.Object
	// taken is the reason of the condition when the name belongs to somebody else.
	taken string
	// set gives object the values that the Guestbook asks for, and leaves everything else in it alone.
	set func()
}

// apply creates the child, or patches in it what differs from what is wanted.
//
// A patch, because it holds nothing but the fields that differ: annotations,
// sidecars and whatever else others have set stays, even if the cache does not
// show it yet. The lock, which is the resource version in the patch, makes the
// API server refuse a patch that was computed from an old copy, or for an object
// that was meanwhile deleted and made anew by somebody else.
func (r *GuestbookReconciler) apply(ctx context.Context, guestbook *webappv1.Guestbook, child child) error {
	key := client.ObjectKeyFromObject(child.object)
	err := r.Get(ctx, key, child.object)
	if apierrors.IsNotFound(err) {
		return r.create(ctx, guestbook, child)
	}
	if err != nil {
		return fmt.Errorf("get %s %s: %w", child.kind, key, err)
	}
	if obstacle := findObstacle(guestbook, child); obstacle != nil {
		return obstacle
	}
	before := child.object.DeepCopyObject().(client.Object)
	child.set()
	if equality.Semantic.DeepEqual(before, child.object) {
		return nil
	}
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, child.object, patch); err != nil {
		return orRefusal(child, fmt.Errorf("patch %s %s: %w", child.kind, key, err))
	}
	logf.FromContext(ctx).Info("Patched", "kind", child.kind)
	return nil
}

func (r *GuestbookReconciler) create(ctx context.Context, guestbook *webappv1.Guestbook, child child) error {
	child.set()
	if err := ctrl.SetControllerReference(guestbook, child.object, r.Scheme); err != nil {
		return fmt.Errorf("set the owner of %s %s: %w", child.kind, guestbook.Name, err)
	}
	if err := r.Create(ctx, child.object); err != nil {
		// It may exist already when the cache lags behind. Its event is on the way and settles whose it is.
		return orRefusal(child, fmt.Errorf("create %s %s: %w", child.kind, client.ObjectKeyFromObject(child.object), err))
	}
	logf.FromContext(ctx).Info("Created", "kind", child.kind)
	return nil
}

// findObstacle returns why the object found can't become the child, nil if it
// can. One that the Guestbook does not control is never touched: it may be
// somebody's production.
func findObstacle(guestbook *webappv1.Guestbook, child child) *obstacle {
	owner := metav1.GetControllerOf(child.object)
	controlled := owner != nil && owner.UID == guestbook.UID
	// Only one Guestbook of a name exists at a time: the owner is a former one, and what it had about to be collected.
	leftover := !controlled && isGuestbook(owner) && owner.Name == guestbook.Name
	switch {
	case leftover, controlled && child.object.GetDeletionTimestamp() != nil:
		return &obstacle{
			reason:  webappv1.ReasonProgressing,
			message: fmt.Sprintf("%s %q is being removed; a new one follows", child.kind, guestbook.Name),
		}
	case !controlled:
		return &obstacle{
			reason:  child.taken,
			message: fmt.Sprintf("%s %q exists and is not managed by this Guestbook: delete it, or give the Guestbook another name", child.kind, guestbook.Name),
		}
	}
	return nil
}

func isGuestbook(owner *metav1.OwnerReference) bool {
	return owner != nil && owner.Kind == "Guestbook" && owner.APIVersion == webappv1.SchemeGroupVersion.String()
}

// orRefusal turns the error into an obstacle if the API server understood the
// request and will not have it. Nobody tells when a quota or a policy has
// changed, so it is tried again, less and less often.
func orRefusal(child child, err error) error {
	refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
	if !refused || isNamespaceGoing(err) {
		return err
	}
	return &obstacle{
		reason:  webappv1.ReasonRefused,
		message: fmt.Sprintf("the API server refuses the %s: %v", child.kind, err),
		cause:   err,
	}
}

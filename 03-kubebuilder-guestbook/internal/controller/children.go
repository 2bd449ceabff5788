package controller

import (
	"cmp"
	"context"
	"errors"
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
// be. It tries both, even if one is blocked or fails, and returns the Deployment,
// the first obstacle, and the errors that are worth a retry.
func (r *GuestbookReconciler) applyChildren(ctx context.Context, guestbook *webappv1.Guestbook) (*appsv1.Deployment, *obstacle, error) {
	settings, obstacle, err := r.getSettings(ctx, guestbook)
	if err != nil {
		return nil, nil, err
	}
	name := metav1.ObjectMeta{Namespace: guestbook.Namespace, Name: guestbook.Name}
	deployment := &appsv1.Deployment{ObjectMeta: name}
	service := &corev1.Service{ObjectMeta: name}
	var children []child
	if obstacle == nil { // pods without settings would never start
		revision := newRevision(guestbook, settings)
		children = append(children, child{"Deployment", deployment, webappv1.ReasonDeploymentTaken, func() { setDeployment(deployment, guestbook, revision) }})
	}
	children = append(children, child{"Service", service, webappv1.ReasonServiceTaken, func() { setService(service, guestbook) }})
	var failed []error
	for _, child := range children {
		blocked, err := r.apply(ctx, guestbook, child)
		obstacle, failed = cmp.Or(obstacle, blocked), append(failed, err)
	}
	return deployment, obstacle, errors.Join(failed...)
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
func (r *GuestbookReconciler) apply(ctx context.Context, guestbook *webappv1.Guestbook, child child) (*obstacle, error) {
	key := client.ObjectKeyFromObject(child.object)
	err := r.Get(ctx, key, child.object)
	if apierrors.IsNotFound(err) {
		return r.create(ctx, guestbook, child)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", child.kind, key, err)
	}
	if obstacle := findObstacle(guestbook, child); obstacle != nil {
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

func (r *GuestbookReconciler) create(ctx context.Context, guestbook *webappv1.Guestbook, child child) (*obstacle, error) {
	child.set()
	if err := ctrl.SetControllerReference(guestbook, child.object, r.Scheme); err != nil {
		return nil, fmt.Errorf("set the owner of %s %s: %w", child.kind, guestbook.Name, err)
	}
	if err := r.Create(ctx, child.object); err != nil {
		// It may exist already, if the cache lags behind. The retry finds out whose it is.
		return refusal(child, err), fmt.Errorf("create %s %s: %w", child.kind, client.ObjectKeyFromObject(child.object), err)
	}
	logf.FromContext(ctx).Info("Created", "kind", child.kind)
	return nil, nil
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

// refusal returns the obstacle if the API server understood the request and refused it, nil for any other error.
func refusal(child child, err error) *obstacle {
	refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
	if !refused || isNamespaceGoing(err) {
		return nil
	}
	return &obstacle{
		reason:  webappv1.ReasonRefused,
		message: fmt.Sprintf("the API server refuses the %s: %v", child.kind, err),
	}
}

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

//workshop:markers 3.8 +kubebuilder Some
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch
// Some distributions, such as OpenShift, require this permission to set blockOwnerDeletion in an owner reference:
// +kubebuilder:rbac:groups=webapp.my.domain,resources=guestbooks/finalizers,verbs=update

// applyChildren creates or patches each child, even if another one is blocked or fails. If the settings are missing or
// can't be read, it leaves the Deployment as it is. It returns the Deployment, the first blocker, and all errors, joined.
//
//workshop:step 3.5f
func (r *GuestbookReconciler) applyChildren(ctx context.Context, guestbook *webappv1.Guestbook) (*appsv1.Deployment, *explanation, error) {
	settings, blocker, err := r.settingsDigest(ctx, guestbook)
	failed := []error{err}
	name := metav1.ObjectMeta{Namespace: guestbook.Namespace, Name: guestbook.Name}
	deployment := &appsv1.Deployment{ObjectMeta: name}
	service := &corev1.Service{ObjectMeta: name} //workshop:step 3.5j
	var children []childObject
	if blocker == nil && err == nil { // pods without settings would never start
		revision := newRevision(guestbook, settings)
		children = append(children, childObject{"Deployment", deployment, webappv1.ReasonDeploymentTaken, func() { setDeployment(deployment, guestbook, revision) }})
	}
	//workshop:step 3.5j
	children = append(children, childObject{"Service", service, webappv1.ReasonServiceTaken, func() { setService(service, guestbook) }})
	for _, child := range children {
		blocked, err := r.apply(ctx, guestbook, child)
		blocker, failed = cmp.Or(blocker, blocked), append(failed, err)
	}
	return deployment, blocker, errors.Join(failed...)
}

//workshop:markers 3.8
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch

// settingsDigest returns the digest of the Guestbook's settings, or a blocker if the ConfigMap
// does not exist. The watch event for the ConfigMap's creation will queue the Guestbook again.
//
//workshop:step 3.5b
func (r *GuestbookReconciler) settingsDigest(ctx context.Context, guestbook *webappv1.Guestbook) (string, *explanation, error) {
	settings := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: guestbook.Namespace, Name: guestbook.Spec.ConfigMapName}
	err := r.Get(ctx, key, settings)
	if apierrors.IsNotFound(err) {
		return "", &explanation{
			reason:  webappv1.ReasonConfigMapNotFound,
			message: fmt.Sprintf("ConfigMap %q does not exist: create it, or choose another spec.configMapName", key.Name),
		}, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("get ConfigMap %s: %w", key, err)
	}
	return digestOf(settings), nil, nil
}

// childObject describes an object that a Guestbook should control.
type childObject struct {
	kind string
	// object has only a namespace and a name at first. If it exists, apply reads the rest from the cache.
	object client.Object
	// taken is the condition's reason if someone else's object has this name.
	taken string
	// set sets those fields of object that the controller owns, and leaves all others alone.
	set func()
}

// apply creates the child, or patches its fields that differ. If it can't:
//
//	                                 blocker   error   the next reconcile
//	someone else's object, or one    yes       no      at the watch event for its deletion
//	that is being deleted
//	refused by the API server        yes       yes     with backoff: no watch event announces a new quota or policy
//	any other error                  no        yes     with backoff, unless the namespace is terminating
//
//workshop:step 3.5e
func (r *GuestbookReconciler) apply(ctx context.Context, guestbook *webappv1.Guestbook, child childObject) (*explanation, error) {
	key := client.ObjectKeyFromObject(child.object)
	err := r.Get(ctx, key, child.object)
	if apierrors.IsNotFound(err) {
		return r.create(ctx, guestbook, child)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", child.kind, key, err)
	}
	if blocker := findBlocker(guestbook, child); blocker != nil {
		return blocker, nil
	}
	return r.patch(ctx, child)
}

// create creates the child. If an object of its kind and name exists, the request fails, even if
// the cache does not show that object yet. Server-side apply would adopt the object.
//
//workshop:step 3.5e
func (r *GuestbookReconciler) create(ctx context.Context, guestbook *webappv1.Guestbook, child childObject) (*explanation, error) {
	child.set()
	if err := ctrl.SetControllerReference(guestbook, child.object, r.Scheme); err != nil {
		return nil, fmt.Errorf("set the owner of %s %s: %w", child.kind, guestbook.Name, err)
	}
	if err := r.Create(ctx, child.object); err != nil {
		// If the cache lags behind, the child may exist already. The retry will find it and check its owner.
		return refusal(child, err), fmt.Errorf("create %s %s: %w", child.kind, client.ObjectKeyFromObject(child.object), err)
	}
	logf.FromContext(ctx).Info("Created", "kind", child.kind)
	return nil, nil
}

// patch sends those of the controller's fields that differ, if any. Everything else stays, such as
// annotations and sidecars that others have added. The lock, which is the resource version in the patch,
// makes the API server refuse a patch that was computed from a stale copy, or from an object that has since
// been deleted and recreated.
//
//workshop:step 3.5i
func (r *GuestbookReconciler) patch(ctx context.Context, child childObject) (*explanation, error) {
	before := child.object.DeepCopyObject().(client.Object)
	child.set()
	if equality.Semantic.DeepEqual(before, child.object) {
		return nil, nil
	}
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, child.object, patch); err != nil {
		return refusal(child, err), fmt.Errorf("patch %s %s: %w", child.kind, client.ObjectKeyFromObject(child.object), err)
	}
	logf.FromContext(ctx).Info("Patched", "kind", child.kind)
	return nil, nil
}

// findBlocker returns why the object that was found can't be the child, or nil if it
// can. The controller never touches an object that the Guestbook does not control: others may depend on it.
//
//workshop:step 3.5g
func findBlocker(guestbook *webappv1.Guestbook, child childObject) *explanation {
	owner := metav1.GetControllerOf(child.object)
	controlled := owner != nil && owner.UID == guestbook.UID
	// A namespace has only one Guestbook of this name at a time. So if the owner has another UID, it has been deleted, and
	// the garbage collector will soon delete this object.
	leftover := !controlled && isGuestbook(owner) && owner.Name == guestbook.Name
	switch {
	case leftover, controlled && child.object.GetDeletionTimestamp() != nil:
		return &explanation{
			reason:  webappv1.ReasonProgressing,
			message: fmt.Sprintf("%s %q is being removed; a new one follows", child.kind, guestbook.Name),
		}
	case !controlled:
		return &explanation{
			reason:  child.taken,
			message: fmt.Sprintf("%s %q exists and is not managed by this Guestbook: delete it, or give the Guestbook another name", child.kind, guestbook.Name),
		}
	}
	return nil
}

// isGuestbook reports whether the owner is a Guestbook, in any version of the API: an owner reference
// keeps the version with which it was written.
//
//workshop:step 3.5g
func isGuestbook(owner *metav1.OwnerReference) bool {
	ours := schema.GroupKind{Group: webappv1.SchemeGroupVersion.Group, Kind: "Guestbook"}
	return owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == ours
}

// refusal returns a blocker if the API server has refused the child: it is forbidden, invalid or too large, or a webhook
// denies it and gives no status code. Otherwise, and for a create that is refused because the namespace is terminating,
// refusal returns nil.
//
//workshop:step 3.5h
func refusal(child childObject, err error) *explanation {
	refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
	if !refused || isNamespaceTerminating(err) {
		return nil
	}
	return &explanation{
		reason:  webappv1.ReasonRefused,
		message: fmt.Sprintf("the API server refuses the %s: %v", child.kind, err),
	}
}

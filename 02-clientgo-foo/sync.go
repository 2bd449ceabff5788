package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
)

// errStaleCache means that the API server has a newer Foo than the cache.
var errStaleCache = errors.New("the cached Foo is stale")

// +kubebuilder:rbac:groups=example.com,resources=foos,verbs=get
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;patch;delete
// Some distributions, such as OpenShift, require this permission to set blockOwnerDeletion in an owner reference:
// +kubebuilder:rbac:groups=example.com,resources=foos/finalizers,verbs=update

// sync reconciles one Foo. It reads the caches, writes only what differs, and may
// be called any number of times.
//
//workshop:step 2.8a
func (c *controller) sync(ctx context.Context, key cache.ObjectName) error {
	foo, err := c.foos.Foos(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		//workshop:step 2.11d
		c.lastStatus.forget(key)
		return nil // the garbage collector deletes the Deployment, which has an owner reference
	}
	if err != nil {
		return fmt.Errorf("get Foo %s: %w", key, err)
	}
	//workshop:until 2.11d if foo.DeletionTimestamp != nil { return nil }
	//workshop:step 2.11d
	if foo.DeletionTimestamp != nil || c.lastStatus.isStale(foo) {
		return nil
	}
	//workshop:between 2.9c 2.10c _, err = c.ensureDeployment(ctx, foo)
	//workshop:step 2.10c
	deployment, err := c.ensureDeployment(ctx, foo)
	//workshop:step 2.14b
	if err == nil {
		err = c.removeRenamed(ctx, foo, deployment)
	}
	//workshop:step 2.10c
	if blocker, found := errors.AsType[*blocker](err); found {
		return c.reportBlocker(ctx, foo, deployment, blocker)
	}
	//workshop:step 2.9c
	if err != nil {
		return err
	}
	//workshop:until 2.11c return nil
	//workshop:step 2.11c
	return c.updateStatus(ctx, foo, observedStatus(foo, deployment))
}

// blocker is an error that says why a Foo can't have its Deployment now, or can't get rid of one with an earlier name.
// The condition reports it.
type blocker struct {
	reason, message string
	// cause is the error that makes the queue retry the sync. It is nil if an event will announce that the Foo is no
	// longer blocked.
	cause error
}

func (o *blocker) Error() string { return o.message }

// ensureDeployment makes sure that the Foo's Deployment exists and matches the Foo, and
// returns it.
//
//workshop:step 2.9c
func (c *controller) ensureDeployment(ctx context.Context, foo *examplev1alpha1.Foo) (*appsv1.Deployment, error) {
	wanted := newDeployment(foo)
	found, err := c.deployments.Deployments(wanted.Namespace).Get(wanted.Name)
	if apierrors.IsNotFound(err) {
		return c.createDeployment(ctx, wanted)
	}
	if err != nil {
		return nil, fmt.Errorf("get Deployment %s: %w", klog.KObj(wanted), err)
	}
	//workshop:step 2.10c
	// A blocker is an error, too: it says why the Foo can't have the Deployment now.
	if blocker := findBlocker(foo, found, wanted); blocker != nil {
		return nil, blocker
	}
	//workshop:until 2.10b return found, nil
	//workshop:step 2.10b
	return c.repairDeployment(ctx, found, wanted)
}

// findBlocker says why the Deployment that was found can't become the desired one, and returns nil if it can. The
// controller never touches a Deployment that the Foo does not control: it may be in production.
//
//workshop:step 2.10c
func findBlocker(foo *examplev1alpha1.Foo, found, wanted *appsv1.Deployment) *blocker {
	owner := controllingFoo(found)
	controlled := owner != nil && owner.UID == foo.UID
	// A namespace has only one Foo of this name at a time. So if the owner has another UID, it has been deleted, and the
	// garbage collector will soon delete its Deployment.
	leftover := owner != nil && !controlled && owner.Name == foo.Name
	switch {
	case leftover, controlled && found.DeletionTimestamp != nil:
		return &blocker{
			reason:  examplev1alpha1.ReasonDeploymentProgressing,
			message: fmt.Sprintf("Deployment %q is being removed; a new one follows", found.Name),
		}
	case !controlled:
		return &blocker{
			reason:  examplev1alpha1.ReasonErrResourceExists,
			message: fmt.Sprintf("Deployment %q exists and is not managed by this Foo: delete it, or choose another spec.deploymentName", found.Name),
		}
	case !equality.Semantic.DeepEqual(found.Spec.Selector, wanted.Spec.Selector):
		// A selector is immutable, and another program has set this one. Only the user can decide to delete pods that
		// are serving.
		return &blocker{
			reason:  examplev1alpha1.ReasonErrResourceExists,
			message: fmt.Sprintf("Deployment %q has a selector that is not this Foo's and can't be changed: delete the Deployment, and a new one follows", found.Name),
		}
	}
	return nil
}

//workshop:step 2.9c
func (c *controller) createDeployment(ctx context.Context, wanted *appsv1.Deployment) (*appsv1.Deployment, error) {
	created, err := c.clients.kube.AppsV1().Deployments(wanted.Namespace).Create(ctx, wanted, metav1.CreateOptions{FieldManager: programName})
	//workshop:step 2.10d
	if isRefusal(err) {
		return nil, newRefusal("create", wanted, err)
	}
	if err != nil {
		// If the cache lags behind, the Deployment may exist already. The retry finds it and checks its owner.
		return nil, fmt.Errorf("create Deployment %s: %w", klog.KObj(wanted), err)
	}
	klog.FromContext(ctx).Info("Created the Deployment", "deployment", klog.KObj(created))
	return created, nil
}

// repairDeployment patches the controller's fields that differ from wanted, if any, and returns the Deployment.
//
//workshop:step 2.10b
func (c *controller) repairDeployment(ctx context.Context, found, wanted *appsv1.Deployment) (*appsv1.Deployment, error) {
	patch, err := newPatch(found, wanted)
	if err != nil || patch == nil {
		return found, err
	}
	patched, err := c.clients.kube.AppsV1().Deployments(found.Namespace).
		Patch(ctx, found.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: programName})
	//workshop:step 2.10d
	if isRefusal(err) {
		return nil, newRefusal("patch", found, err)
	}
	if err != nil {
		return nil, fmt.Errorf("patch Deployment %s: %w", klog.KObj(found), err)
	}
	klog.FromContext(ctx).Info("Patched the Deployment", "deployment", klog.KObj(patched))
	return patched, nil
}

// removeRenamed deletes the Foo's Deployments with earlier names. They serve until the
// Deployment with the current name has rolled out.
//
//workshop:step 2.14b
func (c *controller) removeRenamed(ctx context.Context, foo *examplev1alpha1.Foo, present *appsv1.Deployment) error {
	if !isRolledOut(present, foo.Spec.Replicas) {
		return nil // an event queues the Foo again when the Deployment's status changes
	}
	owned, err := c.deploymentIndex.ByIndex(byOwner, string(foo.UID))
	if err != nil {
		return fmt.Errorf("find the Deployments of Foo %s: %w", klog.KObj(foo), err)
	}
	for _, object := range owned {
		deployment := object.(*appsv1.Deployment)
		if deployment.Name == present.Name || deployment.DeletionTimestamp != nil {
			continue
		}
		if err := c.removeDeployment(ctx, foo, deployment); err != nil {
			return err
		}
	}
	return nil
}

// removeDeployment deletes a Deployment that the Foo no longer names. That can't be undone, so a stale cache must not
// lead to it. If the API server has another generation of the Foo, or a new Foo of the same name, spec.deploymentName
// may have changed, and errStaleCache makes the queue retry the sync. If a user has removed the owner reference to keep
// the Deployment, the resource version makes the API server answer with a conflict. The error is a blocker if the API
// server refuses the deletion (see isRefusal).
//
//workshop:step 2.14a
func (c *controller) removeDeployment(ctx context.Context, foo *examplev1alpha1.Foo, deployment *appsv1.Deployment) error {
	current, err := c.clients.foo.ExampleV1alpha1().Foos(foo.Namespace).Get(ctx, foo.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get Foo %s: %w", klog.KObj(foo), err)
	}
	if current.UID != foo.UID || current.Generation != foo.Generation {
		return fmt.Errorf("delete Deployment %s: %w", klog.KObj(deployment), errStaleCache)
	}
	background := metav1.DeletePropagationBackground
	err = c.clients.kube.AppsV1().Deployments(deployment.Namespace).Delete(ctx, deployment.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &deployment.UID, ResourceVersion: &deployment.ResourceVersion},
		PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if isRefusal(err) {
		return newRefusal("delete", deployment, err)
	}
	if err != nil {
		return fmt.Errorf("delete Deployment %s: %w", klog.KObj(deployment), err)
	}
	klog.FromContext(ctx).Info("Deleted the Deployment of the previous name", "deployment", klog.KObj(deployment))
	return nil
}

// newRefusal returns the blocker for a request that the API server has refused: to create, patch or delete a Deployment.
//
//workshop:step 2.10d
func newRefusal(verb string, deployment *appsv1.Deployment, err error) *blocker {
	return &blocker{
		reason:  examplev1alpha1.ReasonDeploymentRefused,
		message: fmt.Sprintf("the API server refuses to %s Deployment %q: %v", verb, deployment.Name, err),
		cause:   fmt.Errorf("%s Deployment %s: %w", verb, klog.KObj(deployment), err),
	}
}

// isRefusal reports whether the request can't succeed until someone changes the Foo, a policy or a role, or frees up
// some quota.
//
//workshop:step 2.10d
func isRefusal(err error) bool {
	refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
	return refused && !isNamespaceTerminating(err) && !isUIDMismatch(err)
}

// isUIDMismatch reports whether a patch was computed from an object that has since been deleted and recreated.
func isUIDMismatch(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	isUID := func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" }
	return slices.ContainsFunc(status.Status().Details.Causes, isUID)
}

// isNamespaceTerminating reports whether a create failed because the namespace is being deleted, and the Foo with it.
func isNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// isExpected reports whether the error is part of normal operation: the cache lags behind, another client was faster,
// or the namespace is being deleted. A retry succeeds, or finds that the Foo is gone or being deleted.
func isExpected(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) ||
		isNamespaceTerminating(err) || isUIDMismatch(err) || errors.Is(err, errStaleCache)
}

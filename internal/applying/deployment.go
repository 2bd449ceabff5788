// Package applying contains the Go example of docs/writing-objects.md, which writes a Deployment with server-side
// apply.
package applying

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldManager is the name under which the operator owns fields.
const fieldManager = "page-operator"

// newDeployment returns every field that the operator owns in the Deployment, and no others.
func newDeployment(owner *corev1.ConfigMap) *applyappsv1.DeploymentApplyConfiguration {
	labels := map[string]string{"app.kubernetes.io/name": owner.Name}
	return applyappsv1.Deployment(owner.Name, owner.Namespace).
		WithLabels(labels).
		WithOwnerReferences(applymetav1.OwnerReference().
			WithAPIVersion("v1").WithKind("ConfigMap").WithName(owner.Name).WithUID(owner.UID).WithController(true)).
		WithSpec(applyappsv1.DeploymentSpec().
			WithReplicas(2).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(applycorev1.PodTemplateSpec().
				WithLabels(labels).
				WithSpec(applycorev1.PodSpec().WithContainers(
					applycorev1.Container().WithName("page").WithImage(owner.Data["image"])))))
}

// ensureDeployment creates the Deployment, or applies the operator's fields if that is necessary (see apply). If the
// owner does not control the Deployment, ensureDeployment leaves it alone, and returns an error.
func ensureDeployment(ctx context.Context, c client.Client, owner *corev1.ConfigMap) error {
	live := &appsv1.Deployment{}
	err := c.Get(ctx, client.ObjectKeyFromObject(owner), live)
	if apierrors.IsNotFound(err) {
		return create(ctx, c, newDeployment(owner))
	}
	if err != nil {
		return fmt.Errorf("get Deployment %s: %w", owner.Name, err)
	}
	if !metav1.IsControlledBy(live, owner) {
		return fmt.Errorf("the Deployment %s belongs to someone else", owner.Name)
	}
	return apply(ctx, c, live, newDeployment(owner))
}

// create fails if another Deployment has the name, even if the cache does not show that Deployment yet.
func create(ctx context.Context, c client.Client, wanted *applyappsv1.DeploymentApplyConfiguration) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	if err != nil {
		return fmt.Errorf("convert Deployment %s: %w", *wanted.Name, err)
	}
	if err := c.Create(ctx, &unstructured.Unstructured{Object: content}, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("create Deployment %s: %w", *wanted.Name, err)
	}
	return nil
}

// apply sends wanted, unless the operator has already applied exactly these fields and values, and still owns the
// fields. The UID and the resource version make the API server refuse the request if live is stale, or has been
// deleted.
func apply(ctx context.Context, c client.Client, live *appsv1.Deployment, wanted *applyappsv1.DeploymentApplyConfiguration) error {
	if err := ownByApply(ctx, c, live); err != nil {
		return err
	}
	applied, err := applyappsv1.ExtractDeployment(live, fieldManager)
	if err != nil {
		return fmt.Errorf("read the managed fields of Deployment %s: %w", live.Name, err)
	}
	if equality.Semantic.DeepEqual(applied, wanted) {
		return nil
	}
	wanted.WithUID(live.UID).WithResourceVersion(live.ResourceVersion)
	if err := c.Apply(ctx, wanted, client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply Deployment %s: %w", live.Name, err)
	}
	return nil
}

// ownByApply makes the fields that create has sent count as applied. Otherwise the API server would keep them when a
// later apply leaves them out. After the first call for a Deployment, there is nothing left to send.
func ownByApply(ctx context.Context, c client.Client, live *appsv1.Deployment) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(fieldManager), fieldManager)
	if err != nil {
		return fmt.Errorf("read the managed fields of Deployment %s: %w", live.Name, err)
	}
	if patch == nil {
		return nil
	}
	if err := c.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("take over the fields of Deployment %s: %w", live.Name, err)
	}
	return nil
}

package behaviours

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
)

// deploymentKeeper describes the operators that create a Deployment besides the ConfigMap, and undo changes to it.
func deploymentKeeper(operator operatortest.Operator) operatortest.Operator {
	operator = deployingOperator(operator)
	operator.Children[1].Drift = map[string]string{
		"another image":  `{"spec":{"template":{"spec":{"containers":[{"name":"gadget","image":"someone/else:1"}]}}}}`,
		"scaled by hand": `{"spec":{"replicas":2}}`,
	}
	operator.MaxWrites++
	return operator
}

func watchesDeployments(flaw mutation) bool {
	return slices.Contains([]mutation{assignsEnv, ownsTemplate, mergesEnv, appliesAll, appliesNews, appliesForEver, claimsEarly, waitsForPods, waitsForSlowPods}, flaw)
}

// keepDeployment maintains a Deployment with the gadget's size in an environment variable, and then the ConfigMap. With
// waitsForPods or waitsForSlowPods, it maintains the ConfigMap only while the Deployment is available.
func (r *gadgetReconciler) keepDeployment(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	if err := r.applyDeployment(ctx, gadget); err != nil {
		return err
	}
	if (r.flaw == waitsForPods || r.flaw == waitsForSlowPods) && !r.isAvailable(ctx, gadget) {
		return nil // a watch reports the Deployment's status
	}
	return r.keepConfigMap(ctx, gadget)
}

func (r *gadgetReconciler) isAvailable(ctx context.Context, gadget *unstructured.Unstructured) bool {
	found := &appsv1.Deployment{}
	err := r.Get(ctx, client.ObjectKeyFromObject(gadget), found)
	return err == nil && found.Status.AvailableReplicas == *found.Spec.Replicas
}

func (r *gadgetReconciler) applyDeployment(ctx context.Context, gadget *unstructured.Unstructured) error {
	desired := desiredDeployment(gadget)
	switch r.flaw {
	case claimsEarly:
		desired.Spec.Template.Spec.Containers[0].Image = "gadget:slow" // otherwise the pod may happen to be ready
	case waitsForSlowPods:
		desired.Spec.Template.Spec.Containers[0].Image = "gadget:slower"
	}
	if r.flaw == appliesNews {
		desired.Annotations = map[string]string{"test.example.com/seen": gadget.GetResourceVersion()}
	}
	if r.flaw == appliesAll || r.flaw == appliesNews || r.flaw == appliesForEver {
		desired.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
		if err != nil {
			return err
		}
		part := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
		return r.Apply(ctx, part, client.FieldOwner("gadget-operator"), client.ForceOwnership)
	}
	found := &appsv1.Deployment{}
	err := r.Get(ctx, client.ObjectKeyFromObject(desired), found)
	if apierrors.IsNotFound(err) {
		return r.Create(ctx, desired)
	}
	if err != nil {
		return err
	}
	changed := found.DeepCopy()
	r.setDeployment(changed, desired)
	if equality.Semantic.DeepEqual(changed, found) {
		return nil
	}
	return r.Update(ctx, changed)
}

func (r *gadgetReconciler) setDeployment(changed, desired *appsv1.Deployment) {
	changed.Spec.Replicas = desired.Spec.Replicas
	if r.flaw == ownsTemplate {
		if !equality.Semantic.DeepDerivative(desired.Spec.Template, changed.Spec.Template) {
			changed.Spec.Template = desired.Spec.Template
		}
		return
	}
	container := &changed.Spec.Template.Spec.Containers[0]
	container.Image = desired.Spec.Template.Spec.Containers[0].Image
	own := desired.Spec.Template.Spec.Containers[0].Env
	if r.flaw == assignsEnv {
		container.Env = own
		return
	}
	for i := range container.Env {
		if container.Env[i].Name == own[0].Name {
			container.Env[i] = own[0]
			return
		}
	}
	container.Env = append(container.Env, own[0])
}

func desiredDeployment(gadget *unstructured.Unstructured) *appsv1.Deployment {
	size, _, _ := unstructured.NestedInt64(gadget.Object, "spec", "size")
	pods := map[string]string{"app": "gadget", "instance": gadget.GetName()}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: gadget.GetNamespace(), Name: gadget.GetName(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(gadget, gadgetKind)},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: pods},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: pods},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "gadget", Image: "gadget:1", Env: []corev1.EnvVar{{Name: "SIZE", Value: fmt.Sprint(size)}},
				}}},
			},
		},
	}
}

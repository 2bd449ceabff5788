package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
)

// Flaws that show only if there is a second resource.
const (
	sharesSelector mutation = "gives the pods of all gadgets the same labels"
	cleansAll      mutation = "deletes the ConfigMaps of all gadgets when one is deleted"
)

// selectsOwn is a correct operator that resembles the first.
const selectsOwn mutation = "gives the pods of each gadget their own labels"

// deployingOperator describes the operators that also create a Deployment.
func deployingOperator(operator operatortest.Operator) operatortest.Operator {
	operator.Roles = []string{"testdata/gadget/role-deployments.yaml"}
	operator.Children = append(operator.Children, operatortest.Child{Kind: appsv1.SchemeGroupVersion.WithKind("Deployment")})
	return operator
}

func (r *gadgetReconciler) deploy(ctx context.Context, gadget *unstructured.Unstructured) error {
	pods := map[string]string{"app": "gadget"}
	if r.flaw != sharesSelector {
		pods["instance"] = gadget.GetName()
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: gadget.GetNamespace(), Name: gadget.GetName(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(gadget, gadgetKind)},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32),
			Selector: &metav1.LabelSelector{MatchLabels: pods},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: pods},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "gadget", Image: "gadget:1"}}},
			},
		},
	}
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	waits := r.flaw == runsPods || r.flaw == countsPods || r.flaw == condemns
	if waits || r.flaw == claimsPods {
		*deployment.Spec.Replicas = 1
	}
	if err := client.IgnoreAlreadyExists(r.Create(ctx, deployment)); err != nil {
		return r.reportRefused(ctx, gadget, err)
	}
	if waits {
		if err := r.awaitPods(ctx, gadget); err != nil {
			return err
		}
	}
	return r.keepConfigMap(ctx, gadget)
}

// cleanAll deletes what any gadget controls.
func (r *gadgetReconciler) cleanAll(ctx context.Context, namespace string) error {
	list := &corev1.ConfigMapList{}
	if err := r.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.Kind == gadgetKind.Kind {
			if err := client.IgnoreNotFound(r.Delete(ctx, &list.Items[i])); err != nil {
				return err
			}
		}
	}
	return nil
}

var _ = Describe("the test kit", func() {
	catches("mistakes one resource for another",
		mutant{neighbours, sharesSelector, "expected Deployment gadget of one resource not to select pods of another"},
		mutant{neighbours, cleansAll, "expected ConfigMap settings to be left alone when another resource was deleted"},
	)
})

package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
)

// Flaws that show only if there is a second resource, in the same namespace or in another one.
const (
	sharesSelector    mutation = "gives the pods of all gadgets the same labels"
	cleansAll         mutation = "deletes the ConfigMaps of all gadgets when one is deleted"
	cleansEverywhere  mutation = "deletes the ConfigMaps of all gadgets with the name of a deleted one, in all namespaces"
	emptiesEverywhere mutation = "empties the ConfigMaps of all gadgets with the name of a deleted one, in all namespaces"
	waitsForOthers    mutation = "creates no ConfigMap as long as the namespace contains another gadget's, which it takes for a former one"
)

// Correct operators that resemble these.
const (
	selectsOwn mutation = "gives the pods of each gadget their own labels"
	knowsByUID mutation = "remembers by their UIDs which gadgets it has acted on"
	findsByUID mutation = "deletes the ConfigMaps of a deleted gadget, which it finds by the gadget's UID in all namespaces"
)

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

// clean deletes, or empties, the ConfigMaps that the operator takes for those of a deleted gadget. Most operators leave
// the ConfigMaps to the garbage collector.
func (r *gadgetReconciler) clean(ctx context.Context, gadget *unstructured.Unstructured) error {
	namespace := metav1.NamespaceAll
	isOf := func(owner *metav1.OwnerReference) bool { return owner.Name == gadget.GetName() }
	switch r.flaw {
	case cleansAll:
		namespace = gadget.GetNamespace()
		isOf = func(owner *metav1.OwnerReference) bool { return owner.Kind == gadgetKind.Kind }
	case findsByUID:
		isOf = func(owner *metav1.OwnerReference) bool { return owner.UID == gadget.GetUID() }
	case cleansEverywhere, emptiesEverywhere:
	case losesArchive, sweepsNotes, seizesNotes:
		return r.sweep(ctx, gadget)
	default:
		return nil
	}
	list := &corev1.ConfigMapList{}
	if err := r.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		made := &list.Items[i]
		if owner := metav1.GetControllerOf(made); owner == nil || !isOf(owner) {
			continue
		}
		remove := func() error { return r.Delete(ctx, made) }
		if r.flaw == emptiesEverywhere {
			remove = func() error {
				return r.Patch(ctx, made, client.RawPatch(types.MergePatchType, []byte(`{"data":null}`)))
			}
		}
		if err := client.IgnoreNotFound(remove()); err != nil {
			return err
		}
	}
	return nil
}

// waitForOthers does nothing as long as the namespace contains another gadget's ConfigMap.
func (r *gadgetReconciler) waitForOthers(ctx context.Context, gadget *unstructured.Unstructured) error {
	list := &corev1.ConfigMapList{}
	if err := r.List(ctx, list, client.InNamespace(gadget.GetNamespace())); err != nil {
		return err
	}
	for i := range list.Items {
		if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.UID != gadget.GetUID() {
			return nil
		}
	}
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	return r.keepConfigMap(ctx, gadget)
}

// knowByUID adds the finalizer and stores the parcel only once for each generation of a gadget. It maintains the
// ConfigMap in each reconcile.
func (r *gadgetReconciler) knowByUID(ctx context.Context, gadget *unstructured.Unstructured) error {
	if done, known := r.memory.Load(gadget.GetUID()); !known || done != gadget.GetGeneration() {
		if err := r.begin(ctx, gadget); err != nil {
			return err
		}
		r.memory.Store(gadget.GetUID(), gadget.GetGeneration())
	}
	return r.keepConfigMap(ctx, gadget)
}

var _ = Describe("the test kit", func() {
	catches("mistakes one resource for another",
		mutant{neighbours, sharesSelector, "expected Deployment gadget of one resource not to select pods of another"},
		mutant{neighbours, cleansAll, "expected ConfigMap settings to be left alone when another resource was deleted"},
		mutant{neighbours, knowsByName, "beside one of the same name in another namespace as it does alone"},
		mutant{neighbours, cleansEverywhere, "expected ConfigMap settings to be left alone when another resource was deleted"},
		mutant{neighbours, emptiesEverywhere, "expected ConfigMap settings not to be changed when a resource of the same name was deleted in another namespace"},
		mutant{neighbours, waitsForOthers, "expected Gadget gadget-2 to converge"},
	)
	accepts("works in several namespaces",
		twin{knowsByUID, []behaviour{neighbours, drift, update, deletion}},
		twin{findsByUID, []behaviour{neighbours, deletion}},
	)
})

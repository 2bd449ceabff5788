package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Flaws that show when a whole namespace or an unfinished gadget is deleted.
const (
	repairsLast mutation = "repairs its ConfigMap before it removes its finalizer"
	readsLast   mutation = "needs its ConfigMap to clean up"

	storesFirst mutation = "stores the parcel before it adds its finalizer"
	goesOn      mutation = "continues when the gadget to which it adds its finalizer is gone"
	cleansMade  mutation = "removes the parcel only if the gadget has a status"
	resurrects  mutation = "adds its finalizer with an apply of the whole gadget"
)

// beforeCleanup does what some of the operators do before the parcel is removed. It reports whether that removal is
// left out.
func (r *gadgetReconciler) beforeCleanup(ctx context.Context, gadget *unstructured.Unstructured) (leftOut bool, err error) {
	switch r.flaw {
	case repairsLast:
		_, err = r.applyConfigMap(ctx, gadget)
	case readsLast:
		err = r.Get(ctx, client.ObjectKeyFromObject(desiredConfigMap(gadget)), &corev1.ConfigMap{})
	case cleansByName:
		return false, client.IgnoreNotFound(r.Delete(ctx, desiredConfigMap(gadget)))
	case cleansOwn:
		return false, r.deleteOwned(ctx, gadget)
	case cleansMade:
		return observedGeneration(gadget) == 0, nil
	}
	return false, err
}

func (r *gadgetReconciler) storeFirst(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.warehouse.store(gadget); err != nil {
		return err
	}
	return r.alsoMake(ctx, gadget, nil)
}

func (r *gadgetReconciler) resurrect(ctx context.Context, gadget *unstructured.Unstructured) error {
	if !controllerutil.ContainsFinalizer(gadget, gadgetFinalizer) {
		applied := newGadget()
		applied.SetNamespace(gadget.GetNamespace())
		applied.SetName(gadget.GetName())
		applied.Object["spec"] = gadget.Object["spec"]
		controllerutil.AddFinalizer(applied, gadgetFinalizer)
		// Without the gadget's UID, this request creates another gadget if the first one is gone.
		if err := r.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("gadget-operator"), client.ForceOwnership); err != nil {
			return err
		}
		return nil // the change triggers another reconcile
	}
	return r.alsoMake(ctx, gadget, nil)
}

var _ = Describe("the test kit", func() {
	catches("blocks the deletion of a namespace",
		mutant{namespaceDeletion, repairsLast, `held by its finalizers ["test.example.com/parcel"]`},
		mutant{namespaceDeletion, readsLast, `held by its finalizers ["test.example.com/parcel"]`},
		mutant{namespaceDeletion, endsOnRefusal, "exited on its own"},
	)

	catches("assumes that a gadget exists until it is ready",
		mutant{earlyDeletion, storesFirst, "outside Kubernetes"},
		mutant{earlyDeletion, goesOn, "outside Kubernetes"},
		mutant{earlyDeletion, cleansMade, "outside Kubernetes"},
		mutant{earlyDeletion, resurrects, "is still there"},
	)
})

package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Flaws that show when an API server that lags behind shows an operator an earlier state.
const (
	deletesByName mutation = "deletes the ConfigMap with an earlier name, whichever ConfigMap that is by then"
	cleansByName  mutation = "deletes the ConfigMap of a deleted gadget, whichever ConfigMap that is by then"
	// cleansOwn is correct.
	cleansOwn mutation = "deletes the ConfigMap of a deleted gadget only if it is the one in the cache"
)

// deleteOwned deletes the ConfigMap that the cache shows for a gadget that is being deleted, and no other object of
// that name.
func (r *gadgetReconciler) deleteOwned(ctx context.Context, gadget *unstructured.Unstructured) error {
	found := &corev1.ConfigMap{}
	err := r.Get(ctx, client.ObjectKeyFromObject(desiredConfigMap(gadget)), found)
	if err != nil || !metav1.IsControlledBy(found, gadget) {
		return client.IgnoreNotFound(err)
	}
	err = r.Delete(ctx, found, client.Preconditions{UID: &found.UID})
	if apierrors.IsConflict(err) {
		return nil // it is gone, and another object has its name
	}
	return client.IgnoreNotFound(err)
}

var _ = Describe("the test kit", func() {
	catches("mistakes the past for the present",
		mutant{timeTravel, deletesByName, "shown a past in which the spec was different, and the operator had not acted on it yet:\n"},
		mutant{timeTravel, cleansByName, "expected ConfigMap settings to stay, because it belongs to the present"},
		mutant{timeTravel, picksAnotherName, "ConfigMap/settings-2"},
	)

	accepts("is not misled by the past", twin{cleansOwn, []behaviour{timeTravel, deletion}})
})

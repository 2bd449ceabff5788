package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Flaws that show when a namespace goes as a whole.
const (
	repairsLast mutation = "repairs its ConfigMap before it takes its finalizer off"
	readsLast   mutation = "needs its ConfigMap to clean up"
)

// beforeCleanup does what comes before the parcel is removed.
func (r *gadgetReconciler) beforeCleanup(ctx context.Context, gadget *unstructured.Unstructured) (err error) {
	switch r.flaw {
	case repairsLast:
		_, err = r.applyConfigMap(ctx, gadget)
	case readsLast:
		err = r.Get(ctx, client.ObjectKeyFromObject(desiredConfigMap(gadget)), &corev1.ConfigMap{})
	}
	return err
}

var _ = Describe("the test kit", func() {
	catches("keeps a namespace from going",
		mutant{namespaceDeletion, repairsLast, `held by its finalizers ["test.example.com/parcel"]`},
		mutant{namespaceDeletion, readsLast, `held by its finalizers ["test.example.com/parcel"]`},
		mutant{namespaceDeletion, endsOnRefusal, "ended on its own"},
	)
})

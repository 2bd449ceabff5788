package behaviours

import (
	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Flaws that show when a former leader's write arrives late. patchesByName also patches without a resourceVersion, but
// it notices such a write and repairs its effect.
const (
	trustsMemory  mutation = "patches without a resourceVersion, and remembers for which generation it has written its ConfigMap"
	patchesStatus mutation = "patches its status without a resourceVersion, and reconciles a gadget only when its generation changes"
)

// losesLease behaves like the reference operator on a machine that is too busy for a Lease with a short duration.
const losesLease mutation = "soon loses a Lease whose duration is short"

// hasWritten reports whether it was called before for this generation of a gadget.
func (r *gadgetReconciler) hasWritten(gadget *unstructured.Unstructured) bool {
	_, again := r.memory.LoadOrStore([2]any{gadget.GetUID(), gadget.GetGeneration()}, true)
	return again
}

// watchedChanges returns the options that restrict which changes to a gadget reach the reconciler.
func watchedChanges(flaw mutation) []builder.ForOption {
	if flaw != patchesStatus {
		return nil
	}
	return []builder.ForOption{builder.WithPredicates(predicate.GenerationChangedPredicate{})}
}

var _ = Describe("the test kit", func() {
	catches("can't cope with a late write",
		mutant{failover, trustsMemory, "after the second replica had met the spec, a write of the first arrived:"},
		mutant{failover, patchesStatus, "patch gadgets.test.example.com/status"},
	)
	accepts("loses its Lease before the kit takes it away", twin{losesLease, []behaviour{failover}})
})

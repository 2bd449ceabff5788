package behaviours

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Flaws of operators that write when there is nothing to do: only in some reconciles, or without an effect.
const (
	appliesNews    mutation = "applies an annotation that changes with everything that happens to the gadget"
	appliesForEver mutation = "applies its Deployment again and again, without a reason"
	touchesAtPoll  mutation = "changes its gadget at each poll, but not when something happens"
)

// Correct operators whose requests resemble those of broken ones.
const (
	watchesMetadata mutation = "watches only the metadata of its ConfigMaps"
	triesAnyway     mutation = "learns from the API server's refusal that a ConfigMap is someone else's"
)

// watchConfigMaps adds the watches of ConfigMaps to a controller.
func (r *gadgetReconciler) watchConfigMaps(made *builder.Builder) *builder.Builder {
	var owns []builder.OwnsOption
	var watches []builder.WatchesOption
	if r.flaw == watchesMetadata {
		owns, watches = append(owns, builder.OnlyMetadata), append(watches, builder.OnlyMetadata)
	}
	return made.Owns(&corev1.ConfigMap{}, owns...).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.waitingFor), watches...)
}

// tryAnyway sends a patch with a UID that someone else's ConfigMap doesn't have, so the API server refuses the patch.
func (r *gadgetReconciler) tryAnyway(ctx context.Context, found *corev1.ConfigMap) (refusal string, err error) {
	patch := fmt.Sprintf(`{"metadata":{"uid":"the UID of its own"},"data":{"size":%q}}`, "1")
	err = r.Patch(ctx, found.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	if err == nil {
		return "", nil
	}
	return fmt.Sprintf("ConfigMap %s belongs to someone else: %s", found.Name, err), nil
}

// touchAtPoll does what the reference operator does. It also annotates the gadget if at least pollInterval has passed
// since the first reconcile or the last annotation.
func (r *gadgetReconciler) touchAtPoll(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	now := time.Now()
	last, known := r.memory.LoadOrStore(gadget.GetUID(), now)
	if known && now.Sub(last.(time.Time)) >= pollInterval {
		r.memory.Store(gadget.GetUID(), now)
		if err := r.patchGadget(ctx, gadget, func() { gadget.SetAnnotations(map[string]string{"test.example.com/polled": now.String()}) }); err != nil {
			return err
		}
	}
	return r.keepConfigMap(ctx, gadget)
}

var _ = Describe("the test kit", func() {
	catches("writes when there is nothing to do, only in some reconciles or without an effect",
		mutant{silent, appliesNews, "expected no write request while someone else applies the spec"},
		mutant{converges, appliesForEver, "it keeps writing"},
		mutant{silent, touchesAtPoll, "expected no write request while someone else applies the spec"},
	)
	accepts("sends requests that do nothing, or watches little",
		twin{appliesAll, []behaviour{silent}},
		twin{appliesAll, []behaviour{frugal}},
		twin{triesAnyway, []behaviour{collision}},
		twin{watchesMetadata, []behaviour{converges, silent, drift, collision, deletion, neighbours, stale, leastPrivilege}},
	)
})

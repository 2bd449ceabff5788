package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Correct operators whose resources also have a condition that another controller owns. The kit can't know who owns the
// condition Stalled, which kstatus interprets, so isStalled leaves out converges/kstatus.
const (
	isAudited mutation = "leaves alone the condition Audited of another controller"
	isStalled mutation = "leaves alone the condition Stalled of another controller"
)

// stalls sets Stalled itself, in the same write as Ready, and doesn't leave out converges/kstatus.
const stalls mutation = "has a condition Stalled that is True, beside Ready"

// auditors contains the conditions that the other controller sets.
var auditors = map[mutation]metav1.Condition{
	isAudited: {Type: "Audited", Status: metav1.ConditionFalse, Reason: "NoAuditor", Message: "not yet"},
	isStalled: {Type: "Stalled", Status: metav1.ConditionTrue, Reason: "NoAuditor", Message: "the audit makes no progress"},
}

// audit adds the controller that owns the condition.
func (r *gadgetReconciler) audit(manager ctrl.Manager, condition metav1.Condition) error {
	return ctrl.NewControllerManagedBy(manager).Named("audit").For(newGadget()).Complete(reconcile.Func(
		func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			gadget := newGadget()
			if err := r.Get(ctx, request.NamespacedName, gadget); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			conditions, err := conditionList(gadget)
			if err != nil || len(conditions) == 0 || !meta.SetStatusCondition(&conditions, condition) {
				return reconcile.Result{}, err
			}
			return reconcile.Result{}, r.patchStatus(ctx, gadget, conditions)
		}))
}

var _ = Describe("the test kit", func() {
	accepts("shares the status with another controller",
		twin{isAudited, []behaviour{converges, silent, drift, update}},
		twin{isStalled, []behaviour{converges, update}},
	)
	catches("contradicts its own condition", mutant{converges, stalls, "Failed by kstatus"})
})

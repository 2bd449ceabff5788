package behaviours

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"example.com/operator-workshop/operatortest"
)

// Flaws that show when a former leader's write arrives late. patchesByName also patches without a resourceVersion, but
// it notices such a write and repairs its effect.
const (
	trustsMemory  mutation = "patches without a resourceVersion, and remembers for which generation it has written its ConfigMap"
	patchesStatus mutation = "patches its status without a resourceVersion, and reconciles a gadget only when its generation changes"
)

// losesLease is the reference operator, on a machine that is too busy for a Lease with a short duration.
const losesLease mutation = "soon loses a Lease whose duration is short"

// runStalled runs this operator. If the Lease's duration is at most five seconds, the operator ends with errLost when
// it first renews the Lease.
func runStalled(ctx context.Context, config *rest.Config, options operatortest.RunOptions, stock *warehouse) error {
	election := options.LeaderElection
	if election == nil || election.LeaseDuration > 5*time.Second {
		return runGadgets(ctx, config, options, stock, losesLease)
	}
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPut && strings.Contains(request.URL.Path, "/leases/") {
				lose(errLost)
			}
			return next.RoundTrip(request)
		})
	})
	if err := runGadgets(ctx, config, options, stock, losesLease); err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), errLost) {
		return errLost
	}
	return nil
}

var errLost = errors.New("leader election lost")

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// hasWritten reports whether it was called before for this generation of a gadget.
func (r *gadgetReconciler) hasWritten(gadget *unstructured.Unstructured) bool {
	_, again := r.memory.LoadOrStore([2]any{gadget.GetUID(), gadget.GetGeneration()}, true)
	return again
}

// watchedChanges returns the options that restrict which changes of a gadget reach the reconciler.
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

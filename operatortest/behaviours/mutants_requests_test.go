package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
)

// Flaws whose only effect is requests that the API server refuses, so the final state doesn't show them.
const (
	retriesStale mutation = "retries a refused write with the same resourceVersion"
	sendsInvalid mutation = "sends what the API server refuses as invalid, and then something else"
)

// retryStale does what the reference operator does, but writes the status with the copy of the gadget that the
// reconcile began with. If that reconcile has added the finalizer, the API server refuses the write and also its
// retries, which use the same copy.
func (r *gadgetReconciler) retryStale(ctx context.Context, gadget *unstructured.Unstructured) error {
	old := gadget.DeepCopy()
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return r.keepConfigMap(ctx, old.DeepCopy()) })
}

func (r *gadgetReconciler) sendInvalid(ctx context.Context, gadget *unstructured.Unstructured) error {
	invalid := desiredConfigMap(gadget)
	invalid.Labels = map[string]string{"test.example.com/gadget": "not a label value"}
	if err := r.Create(ctx, invalid); !apierrors.IsInvalid(err) {
		return err
	}
	return r.alsoMake(ctx, gadget, nil)
}

var _ = Describe("the test kit", func() {
	catches("sends requests that the API server must refuse",
		mutant{frugal, retriesStale, "expected at most 1 write refused because of a conflict"},
		mutant{frugal, sendsInvalid, "expected no write that the API server refuses as invalid"},
	)
})

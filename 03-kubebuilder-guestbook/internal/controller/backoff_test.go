//workshop:given 3.3a

package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// pausesBetween is a rate limiter that reports how long the queue delays a request after each failure.
type pausesBetween struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	pauses chan time.Duration
}

func (p pausesBetween) When(request reconcile.Request) time.Duration {
	pause := p.TypedRateLimiter.When(request)
	select {
	case p.pauses <- pause:
	default:
	}
	return pause
}

func TestConflictIsRetriedWithBackoffAndCounted(t *testing.T) {
	g := NewWithT(t)
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "webapp.my.domain", Resource: "guestbooks"}, "web", errors.New("changed"))
	reconciler := testReconciler(t, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return conflict
		},
	}, newGuestbook(), newSettings())
	result, err := reconciler.Reconcile(t.Context(), requestFor(newGuestbook()))
	g.Expect(result).To(BeZero())
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "see Reconcile in guestbook_controller.go, found: %v", err)

	limiter := pausesBetween{workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), make(chan time.Duration, 4)}
	running, err := controller.NewUnmanaged("lasting-conflict", controller.Options{Reconciler: reconciler, RateLimiter: limiter, SkipNameValidation: new(true)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(running.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(requestFor(newGuestbook()))
		return nil
	}))).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- running.Start(ctx) }()
	for _, pause := range []time.Duration{5, 10, 20, 40} {
		g.Eventually(limiter.pauses).WithTimeout(time.Minute).Should(Receive(Equal(pause*time.Millisecond)), "each pause must be twice as long as the last")
	}
	stop()
	g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	g.Expect(countErrors(g, "lasting-conflict")).To(BeNumerically(">=", 4), "each failure must be counted, because alerts use this metric")
}

// countErrors returns how many calls to a controller's Reconcile have failed, according to controller-runtime's metric.
func countErrors(g Gomega, name string) float64 {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_errors_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == name {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

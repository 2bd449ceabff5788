package behaviours

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/operator-workshop/operatortest/internal/trial"
)

// maxPause is the reference operator's Operator.MaxPause: the shortest one that the kit allows.
const maxPause = 2 * time.Second

// Correct operators that do nothing for a long time.
const (
	pollsChildren    mutation = "polls its ConfigMaps instead of watching them, at an interval that is shorter than MaxPause"
	backsOff         mutation = "waits twice as long after each failure, and soon longer than MaxPause"
	waitsForSlowPods mutation = "waits for pods that take longer than MaxPause to start"
)

const (
	// pollInterval is the interval at which pollsChildren and touchesAtPoll poll.
	pollInterval = maxPause * 3 / 4
	// firstRetry and lastRetry are the delays of backsOff after the first failure and after many. The fourth delay is
	// longer than maxPause.
	firstRetry, lastRetry = 300 * time.Millisecond, 4 * time.Second
)

// watchesChildren reports whether the operator watches its ConfigMaps.
func watchesChildren(flaw mutation) bool { return flaw != ignoresChildren && flaw != pollsChildren }

// pace returns the options that say how soon an operator retries.
func pace(flaw mutation) controller.Options {
	if flaw != backsOff {
		return controller.Options{}
	}
	return controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)}
}

// nextPoll returns the result of a reconcile, which applies if the reconcile returns no error. Operators that poll look
// at the gadget again after an interval; the others wait for an event.
func nextPoll(flaw mutation) reconcile.Result {
	switch flaw {
	case pollsChildren, touchesAtPoll:
		return reconcile.Result{RequeueAfter: pollInterval}
	case appliesForEver:
		return reconcile.Result{RequeueAfter: 50 * time.Millisecond}
	}
	return reconcile.Result{}
}

var _ = Describe("the test kit", func() {
	accepts("does nothing for a long time, for a good reason",
		twin{pollsChildren, []behaviour{drift, collision}},
		twin{waitsForSlowPods, []behaviour{converges}},
	)
})

// tryTrial runs one trial of a behaviour on an operator that has plenty of time for each wait, even on a busy machine.
func tryTrial(ctx context.Context, g Gomega, flaw mutation, tried behaviour, id string) error {
	operator := gadgetOperator(flaw)
	operator.Timeout = 5 * time.Minute
	runner, err := trial.NewRunner(ctx, operator, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	runner.OnlyTrial = tried.name + "/" + id
	err = tried.try(ctx, runner)
	g.Expect(runner.Trials(tried.name)).To(HaveLen(1))
	return err
}

var _ = pooledIt("accepts an operator that waits longer after each failure", func(ctx context.Context, g Gomega) {
	g.Expect(tryTrial(ctx, g, backsOff, faults, "others-write-at-the-same-time-409-conflict")).To(Succeed())
})

var _ = pooledIt("doesn't wait until the time limit for an operator that does nothing", func(ctx context.Context, g Gomega) {
	g.Expect(tryTrial(ctx, g, ignoresChildren, drift, "configmap-another-size")).To(MatchError(And(
		ContainSubstring("found, when the operator had made no request for "),
		ContainSubstring("data.size of ConfigMap settings still has the value that it was changed to"),
		ContainSubstring("because Operator.MaxPause is 2s: raise Operator.MaxPause if the operator polls less often"),
	)))
})

package trial

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/testcluster"
	"example.com/operator-workshop/operatortest/traffic"
)

func TestStillness(t *testing.T) {
	g := NewWithT(t)
	looks := int(Quiet / testcluster.PollInterval)
	done, inFlight := traffic.Request{Done: true}, traffic.Request{}
	// looksUntilStill returns after how many checks the operator counts as done, or 3*looks if it never does.
	looksUntilStill := func(stillness *Stillness, requests ...traffic.Request) int {
		for i := range 3 * looks {
			if stillness.Still(requests) {
				return i + 1
			}
		}
		return 3 * looks
	}
	var stillness Stillness
	g.Expect(looksUntilStill(&stillness, done)).To(Equal(looks + 1))
	g.Expect(looksUntilStill(&stillness, done, done)).To(Equal(looks+1), "a request must start the count again")
	g.Expect(looksUntilStill(&Stillness{}, inFlight, done)).To(Equal(3*looks), "an operator with a request in flight must not count as done")
}

func TestWaitsThatAreOverBeforeTheFirstCheckSaySo(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tried := (&Runner{Cluster: &testcluster.Cluster{}}).newTrial("drift/a", "spec-a")
	err := tried.Within(ctx, time.Minute, "a child to exist", func(ctx context.Context) error { return ctx.Err() })
	g.Expect(err).To(MatchError("expected a child to exist\nfound, when the trial was cancelled or its time was up: no check had ended: context canceled"))
	g.Expect(err).To(MatchError(context.Canceled))
}

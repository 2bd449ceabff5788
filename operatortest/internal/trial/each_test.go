package trial

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
)

func TestEachReportsTheLowestFailure(t *testing.T) {
	higher := make(chan struct{})
	err := Each(t.Context(), 3, func(ctx context.Context, i int) error {
		if i == 2 {
			defer close(higher)
			return errors.New("the higher one")
		}
		<-higher
		if i == 0 {
			return nil
		}
		return errors.Join(ctx.Err(), errors.New("the lower one"))
	})
	NewWithT(t).Expect(err).To(MatchError("the lower one"), "the lower failure must be reported, even though the higher one came first")
}

func TestEachCancelsTheCallsWithHigherNumbers(t *testing.T) {
	err := Each(t.Context(), 3*ParallelTrials, func(ctx context.Context, i int) error {
		if i == 0 {
			return errors.New("the lowest one")
		}
		<-ctx.Done()
		return ctx.Err()
	})
	NewWithT(t).Expect(err).To(MatchError("the lowest one"))
}

func TestEachFailsIfItsContextEnds(t *testing.T) {
	bounded, cancel := context.WithCancel(t.Context())
	err := Each(bounded, 2*ParallelTrials, func(context.Context, int) error {
		cancel()
		return nil
	})
	NewWithT(t).Expect(err).To(MatchError(context.Canceled), "an incomplete run must be an error")
}

func TestEachWithAllReportsAllFailures(t *testing.T) {
	g := NewWithT(t)
	err := Each(WithAll(t.Context()), 3*ParallelTrials, func(ctx context.Context, i int) error {
		if i%ParallelTrials != 1 {
			return ctx.Err()
		}
		return &failure{id: fmt.Sprintf("drift/%d", i), cause: fmt.Errorf("expected %d\nfound another", i)}
	})
	g.Expect(err).To(MatchError("expected 1\nfound another\n2 more failed:\n  drift/13: expected 13\n  drift/25: expected 25"))
	g.Expect(Brief(err)).To(Equal("expected 1\nfound another"))
	g.Expect(Each(WithAll(t.Context()), 3, func(context.Context, int) error { return nil })).To(Succeed())
}

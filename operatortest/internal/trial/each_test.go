package trial

import (
	"context"
	"errors"
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
	NewWithT(t).Expect(err).To(MatchError("the lower one"), "though the higher one failed sooner")
}

func TestEachEndsThoseAboveAFailure(t *testing.T) {
	err := Each(t.Context(), 3*ParallelTrials, func(ctx context.Context, i int) error {
		if i == 0 {
			return errors.New("the lowest one")
		}
		<-ctx.Done()
		return ctx.Err()
	})
	NewWithT(t).Expect(err).To(MatchError("the lowest one"))
}

func TestEachSaysThatTimeWasUp(t *testing.T) {
	bounded, cancel := context.WithCancel(t.Context())
	err := Each(bounded, 2*ParallelTrials, func(context.Context, int) error {
		cancel()
		return nil
	})
	NewWithT(t).Expect(err).To(MatchError(context.Canceled), "not all were tried")
}

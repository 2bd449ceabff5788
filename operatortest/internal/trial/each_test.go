package trial

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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

func TestEachKeepsToItsLimit(t *testing.T) {
	g := NewWithT(t)
	var running atomic.Int32
	release, result := make(chan struct{}), make(chan error)
	go func() {
		result <- Each(WithParallel(t.Context(), 2), 10, func(context.Context, int) error {
			running.Add(1)
			<-release
			return nil
		})
	}()
	g.Eventually(running.Load).Should(BeEquivalentTo(2))
	g.Consistently(running.Load).Should(BeEquivalentTo(2))
	close(release)
	g.Eventually(result).Should(Receive(Succeed()))
	g.Expect(running.Load()).To(BeEquivalentTo(10))
}

func TestParallelFromEnvironment(t *testing.T) {
	tests := map[string]struct {
		given string
		want  int
		err   string
	}{
		"nothing":                  {want: ParallelTrials},
		"a number":                 {given: "4", want: 4},
		"zero":                     {given: "0", err: "OPERATORTEST_PARALLEL=0: give a number of trials such as 4"},
		"something else":           {given: "few", err: "OPERATORTEST_PARALLEL=few: give a number of trials such as 4"},
		"a number that is too big": {given: "99999999999999999999", err: "give a number"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("OPERATORTEST_PARALLEL", test.given)
			parallel, err := parallelFromEnvironment()
			if test.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(parallel).To(Equal(test.want))
		})
	}
}

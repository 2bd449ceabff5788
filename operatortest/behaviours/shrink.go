package behaviours

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/specgen"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// defaultShrinkTime bounds the search for a shorter sequence, unless the Runner's ShrinkTime does.
const defaultShrinkTime = 30 * time.Second

// The limit of each wait during that search is between minLimit and maxLimit.
const minLimit, maxLimit = 500 * time.Millisecond, 5 * time.Second

// report searches for a shorter sequence that fails, too, and tries it once more with the operator's full timeout. It
// describes that sequence, or the original one if the shorter one passes this time.
func (s *search) report(ctx context.Context, number int, failing sequence) error {
	failed := s.results[failing.String()]
	shortest := s.shrink(ctx, number, failing)
	again := s.try(ctx, shortest)
	if again == nil || errors.Is(again, errNoWay) {
		shortest, again = failing, failed // in the search, the operator was probably only slow
	}
	return fmt.Errorf("expected a resource to reach the same final state whatever its spec was before\nfound another final state after these steps, the shortest sequence found:\n%s"+
		"drawn from Operator.Seed %d\n%w", shortest, randomSeed(s.Operator), again)
}

// shrink makes rapid draw the same plan again, and simplify it while the sequence with the given number still fails. It
// returns the simplest failing sequence that was found, which may be the given one. If the search gets stuck with a
// limit below maxLimit, shrink searches once more with maxLimit: the machine may be busier than it was during the
// trials.
func (s *search) shrink(ctx context.Context, number int, failing sequence) sequence {
	limit := maxLimit
	if s.slowest > 0 {
		limit = min(max(2*s.slowest, minLimit), maxLimit)
	}
	shortest, stuck := s.shrinkWithin(ctx, limit, number, failing)
	if stuck && limit < maxLimit && ctx.Err() == nil {
		shortest, _ = s.shrinkWithin(ctx, maxLimit, number, failing)
	}
	return shortest
}

// shrinkWithin is like shrink, but searches only once, with the given limit for each wait. It also reports whether the
// search got stuck.
func (s *search) shrinkWithin(ctx context.Context, limit time.Duration, number int, failing sequence) (shortest sequence, stuck bool) {
	shortest = failing
	_ = s.Try(ctx, "a shorter sequence", func(ctx context.Context, t *trial.Trial) error { // an error in the cleanup is irrelevant here
		search := &shrinker{search: s, trial: t, limit: limit}
		t.Start(operatortest.RunOptions{})
		runRapid(randomSeed(s.Operator), cmp.Or(s.ShrinkTime, defaultShrinkTime), func(t *rapid.T) {
			made, err := s.keepAdmitted(ctx, s.draw(t).sequences[number])
			if err == nil && search.fails(ctx, made) {
				shortest = made
				t.Fatal("another final state")
			}
		})
		stuck = search.stuck
		return nil
	})
	return shortest, stuck
}

// shrinker tries many sequences one after the other, as quickly as possible: in one namespace, with one operator.
// Its result is a guess, which must then be tried with the full timeout.
type shrinker struct {
	*search
	trial *trial.Trial
	limit time.Duration
	// stuck means that the final state of a new resource could not be determined, or that a resource was not removed in
	// time. Then nothing more can be tried.
	stuck bool
}

// fails reports whether a sequence ends in the wrong state. It returns false if that can't be determined.
func (s *shrinker) fails(ctx context.Context, sequence sequence) bool {
	if _, judged := s.results[sequence.String()]; judged || !sequence.changes() {
		return s.failed(sequence)
	}
	ends := make([]state.Snapshot, len(sequence.specs))
	for i, spec := range sequence.specs {
		if !sequence.passes(i) {
			ends[i] = s.end(ctx, spec)
		}
	}
	if s.stuck || ctx.Err() != nil {
		return false
	}
	resource := s.trial.Resource(sequence.specs[0])
	err := s.follow(ctx, s.trial, resource, sequence, ends, s.limit)
	s.record(sequence, err)
	s.clear(ctx, resource)
	return s.failed(sequence)
}

// end returns the state to which a new resource with a spec converges. If that can't be determined, end sets stuck.
func (s *shrinker) end(ctx context.Context, spec map[string]any) state.Snapshot {
	key := specgen.OneLine(spec)
	if known, found := s.ends[key]; found || s.stuck {
		return known
	}
	resource := s.trial.Resource(spec)
	err := within(ctx, s.limit, func(ctx context.Context) error {
		return errors.Join(s.trial.Create(ctx, resource), s.trial.Converge(ctx, resource))
	})
	found, stateErr := s.trial.State(ctx)
	if err != nil || stateErr != nil {
		s.stuck = true
	} else {
		s.ends[key] = found
	}
	s.clear(ctx, resource)
	return found
}

// clear deletes the last resource and waits until nothing of it remains, to make room for the next one. If that fails,
// clear sets stuck.
func (s *shrinker) clear(ctx context.Context, resource *unstructured.Unstructured) {
	err := within(ctx, maxLimit, func(ctx context.Context) error {
		return errors.Join(s.trial.Delete(ctx, resource), s.trial.WaitGone(ctx, resource, "the kit searches for a shorter sequence of specs"))
	})
	s.stuck = s.stuck || err != nil
}

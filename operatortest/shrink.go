package operatortest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

const (
	// shrinkTime bounds the search for a shorter journey, unless a test gives it more.
	shrinkTime = 30 * time.Second
	// minPatience and maxPatience bound each wait in it.
	minPatience, maxPatience = 500 * time.Millisecond, 5 * time.Second
)

// report searches for the shortest journey that fails, tries it once more with
// all the time that the operator has, and describes it.
func (s *travels) report(ctx context.Context, number int, failing journey) error {
	failed := s.verdicts[failing.String()]
	shortest := s.shrink(ctx, number, failing)
	again := s.verdict(ctx, shortest)
	if again == nil || errors.Is(again, errNoWay) {
		shortest, again = failing, failed // the operator was only slow
	}
	return fmt.Errorf("expected a resource to end alike whatever its spec was before\nfound another end by these steps, the shortest way there:\n%s"+
		"drawn at random, and drawn again by -ginkgo.seed=%d -ginkgo.label-filter=transitions\n%w", shortest, s.randomSeed(), again)
}

// shrink lets rapid draw the same plan again and simplify it, as long as the
// journey of that number fails.
func (s *travels) shrink(ctx context.Context, number int, failing journey) journey {
	search := &shrinking{travels: s, patience: maxPatience}
	if s.slowest > 0 {
		search.patience = min(max(2*s.slowest, minPatience), maxPatience)
	}
	shortest := failing
	_ = s.try(ctx, func(ctx context.Context, trial *trial) error { // an error of clearing up tells nothing here
		search.trial = trial
		trial.start(RunOptions{})
		runRapid(s.randomSeed(), s.shrinkTime, func(t *rapid.T) {
			made, err := s.sift(ctx, s.draw(t).journeys[number])
			if err == nil && search.fails(ctx, made) {
				shortest = made
				t.Fatal("another end")
			}
		})
		return nil
	})
	return shortest
}

// shrinking tries many journeys one after the other, as quickly as possible: in
// one namespace, with one operator. What it finds is a guess, to be tried properly.
type shrinking struct {
	*travels
	trial    *trial
	patience time.Duration
	// stuck tells that something could not be removed.
	stuck bool
}

// fails tells whether a journey ends elsewhere, and not if that can't be found out.
func (s *shrinking) fails(ctx context.Context, journey journey) bool {
	if _, judged := s.verdicts[journey.String()]; judged || !journey.leads() {
		return s.failed(journey)
	}
	ends := make([]state, len(journey.specs))
	for i, spec := range journey.specs {
		if !journey.passes(i) {
			ends[i] = s.end(ctx, spec)
		}
	}
	if s.stuck || ctx.Err() != nil {
		return false
	}
	resource := s.trial.resource(journey.specs[0])
	err := s.follow(ctx, s.trial, resource, journey, ends, s.patience)
	s.judge(journey, err)
	s.clear(ctx, resource)
	return s.failed(journey)
}

// end is the state of a new resource of a spec as soon as it has converged.
func (s *shrinking) end(ctx context.Context, spec map[string]any) state {
	key := oneLine(spec)
	if known, found := s.ends[key]; found || s.stuck {
		return known
	}
	resource := s.trial.resource(spec)
	err := within(ctx, s.patience, func(ctx context.Context) error {
		return errors.Join(s.trial.create(ctx, resource), s.trial.converge(ctx, resource))
	})
	found, stateErr := s.trial.state(ctx)
	if err != nil || stateErr != nil {
		s.stuck = true
	}
	s.ends[key] = found
	s.clear(ctx, resource)
	return found
}

// clear makes room for the next resource.
func (s *shrinking) clear(ctx context.Context, resource *unstructured.Unstructured) {
	err := within(ctx, maxPatience, func(ctx context.Context) error {
		return errors.Join(s.trial.remove(ctx, resource), s.trial.gone(ctx, resource, "a shorter sequence of specs is searched"))
	})
	s.stuck = s.stuck || err != nil
}

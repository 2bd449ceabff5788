package behaviours

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/specgen"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// refusedFor is how long the kit checks that the status doesn't claim that an unmeetable spec is met.
const refusedFor = trial.Quiet

var transitions = behaviour{
	name:    "transitions",
	after:   "update",
	promise: "reaches the same final state whatever the spec was before",
	advice: "what depends on the past: compute the desired state from the current spec alone, compare it with what exists, and remove what is left over; " +
		"compute each condition anew each time, and watch what blocks the operator, or check it again with RequeueAfter; " +
		"if a condition is meant to describe an earlier change, such as one that is True for a while after it, remove it in Operator.Normalize",
	check: func(ctx context.Context, runner *trial.Runner) error {
		known, err := runner.Specs(ctx)
		if err != nil {
			return err
		}
		search := newSearch(runner, known)
		planned, err := search.plan(ctx)
		if err != nil {
			return err
		}
		if err := search.prepareEnds(ctx, planned); err != nil {
			return err
		}
		return search.tryAll(ctx, planned)
	},
}

// prepareEnds determines, in parallel, the final state of a new resource with each spec in the planned sequences.
func (s *search) prepareEnds(ctx context.Context, planned []sequence) error {
	ends := map[string]map[string]any{}
	for _, sequence := range planned {
		for _, spec := range sequence.specs {
			ends[specgen.OneLine(spec)] = spec
		}
	}
	specs := slices.Sorted(maps.Keys(ends))
	return trial.Each(ctx, len(specs), func(ctx context.Context, i int) error {
		_, err := s.end(ctx, ends[specs[i]])
		return err
	})
}

// tryAll tries the sequences, and the detours by way of specs that can't be met.
func (s *search) tryAll(ctx context.Context, planned []sequence) error {
	var detours []func(context.Context) error
	for _, unmeetable := range s.Operator.Unmeetable {
		for _, detour := range []detour{fromMet, fromTheStart, blockerGone} {
			detours = append(detours, func(ctx context.Context) error { return tryDetour(ctx, s.Runner, unmeetable, detour) })
		}
	}
	err := trial.Each(ctx, len(planned)+len(detours), func(ctx context.Context, i int) error {
		if i >= len(planned) {
			return detours[i-len(planned)](ctx)
		}
		if !planned[i].changes() {
			return nil
		}
		err := s.try(ctx, planned[i])
		if errors.Is(err, errNoWay) {
			return nil
		}
		return err
	})
	if i := slices.IndexFunc(planned, s.failed); i >= 0 && ctx.Err() == nil {
		return s.report(ctx, i, planned[i])
	}
	if err == nil && !slices.ContainsFunc(planned, s.arrived) {
		return fmt.Errorf("expected the API server to allow a change from one spec to another\nfound that it refuses a change in each of the sequences below: "+
			"declare Operator.Immutable for fields that can't be changed, and Operator.Values for others\n%s", planned)
	}
	return err
}

// detour says how a resource gets a spec that can't be met, and how that problem ends.
type detour string

const (
	fromMet      detour = "a converged resource's %s, and the spec was corrected"
	fromTheStart detour = "a new resource's %s, and the spec was corrected"
	blockerGone  detour = "a converged resource's %s, and then the blocking object was deleted"
)

// tryDetour gives a resource a spec that can't be met, and then corrects the spec or deletes the object that blocks the
// operator. If that object is unknown, the detour blockerGone does nothing.
func tryDetour(ctx context.Context, runner *trial.Runner, unmeetable operatortest.Unmeetable, detour detour) error {
	spec, err := runner.UnmeetableSpec(unmeetable)
	if err != nil {
		return err
	}
	wanted, err := runner.Fresh(ctx, nil)
	if err != nil {
		return err
	}
	circumstances := fmt.Sprintf(string(detour), unmeetable.Name)
	return runner.Try(ctx, circumstances, func(ctx context.Context, t *trial.Trial) error {
		blocker, err := prepareBlocker(ctx, t, unmeetable, spec)
		if err != nil {
			return err
		}
		if detour == blockerGone {
			if blocker == nil {
				return nil // only an object with a child's name is known to be the blocker
			}
			if wanted, err = runner.Fresh(ctx, spec); err != nil {
				return err
			}
		}
		t.Start(operatortest.RunOptions{})
		resource := t.Resource(nil)
		if detour == fromTheStart {
			resource = t.Resource(spec)
		}
		if err := t.Create(ctx, resource); err != nil {
			return err
		}
		if detour != fromTheStart {
			if err := t.Converge(ctx, resource); err != nil {
				return err
			}
		}
		if err := staysUnmet(ctx, t, resource, unmeetable); err != nil {
			return fmt.Errorf("%s: %w", circumstances, err)
		}
		if detour == blockerGone {
			err = t.Delete(ctx, blocker)
		} else {
			err = t.SetSpec(ctx, resource, runner.SampleSpec())
		}
		if err != nil {
			return err
		}
		if err := t.ConvergeTo(ctx, resource, wanted, "the same final state as that of a new resource"); err != nil {
			return fmt.Errorf("%s: %w", circumstances, err)
		}
		return nil
	})
}

// prepareBlocker creates what blocks the operator. It returns the object that has a child's kind and name, or nil if
// there is none.
func prepareBlocker(ctx context.Context, t *trial.Trial, unmeetable operatortest.Unmeetable, spec map[string]any) (*unstructured.Unstructured, error) {
	if err := t.PrepareUnmeetable(ctx, unmeetable); err != nil {
		return nil, err
	}
	resource := t.Resource(spec)
	for _, declared := range t.Operator.Children {
		objects, err := t.List(ctx, declared.Kind)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if !declared.Generated && object.GetName() == declared.NameFor(resource) {
				return object, nil
			}
		}
	}
	return nil, nil
}

// staysUnmet makes a resource's spec unmeetable, and expects the status to report that and to keep reporting it.
func staysUnmet(ctx context.Context, t *trial.Trial, resource *unstructured.Unstructured, unmeetable operatortest.Unmeetable) error {
	if err := t.MakeUnmeetable(ctx, resource, unmeetable); err != nil {
		return err
	}
	return t.Throughout(ctx, refusedFor, "the status to keep saying that the spec is not met", func(ctx context.Context) error {
		return t.Unmet(ctx, resource)
	})
}

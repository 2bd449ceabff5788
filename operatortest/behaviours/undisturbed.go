package behaviours

import (
	"context"
	"fmt"
	"slices"

	"example.com/operator-workshop/operatortest/internal/specgen"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// maxAlternatives is the largest number of specs that alternatives returns.
const maxAlternatives = 3

// undisturbedLife is a lifecycle that succeeds if nothing interferes, with the operator's writes in it.
type undisturbedLife struct {
	*lifecycle
	writes []write
}

// undisturbed returns a lifecycle that succeeds if nothing interferes, and the operator's writes in it. If the operator
// doesn't carry out the changes to some fields, the lifecycle omits those changes, so the flaw doesn't hide others.
// undisturbed returns errNotTried if every lifecycle that it runs fails even when undisturbed: other behaviours report
// the reason, and a disturbance wouldn't show more.
func undisturbed(ctx context.Context, runner *trial.Runner) (*lifecycle, []write, error) {
	found, err := runner.Once("life", func() (any, error) {
		change, err := runner.OtherSpec(ctx)
		if err != nil {
			return nil, err
		}
		first, err := playUndisturbed(ctx, runner, change)
		if err == nil || ctx.Err() != nil {
			return first, err
		}
		others, otherErr := alternatives(ctx, runner, false)
		if otherErr != nil {
			return nil, otherErr
		}
		for _, other := range others {
			if found, otherErr := playUndisturbed(ctx, runner, other); otherErr == nil {
				found.remark = fmt.Sprintf("the spec is only changed to %s, because other changes fail even when undisturbed", specgen.OneLine(other))
				return found, nil
			}
		}
		return nil, fmt.Errorf("%w, because creating, changing and deleting a resource fails even when undisturbed: fix that first; the behaviours %q and %q show it\n%s",
			errNotTried, update.name, deletion.name, trial.Brief(err))
	})
	if err != nil {
		return nil, nil, err
	}
	life := found.(*undisturbedLife)
	return life.lifecycle, life.writes, nil
}

func playUndisturbed(ctx context.Context, runner *trial.Runner, change map[string]any) (*undisturbedLife, error) {
	life, err := newLifecycle(ctx, runner, change)
	if err != nil {
		return nil, err
	}
	recorder := &crashPoint{}
	err = playCrashes(ctx, runner.Reference, life, "the writes of a life without a crash", recorder)
	return &undisturbedLife{lifecycle: life, writes: recorder.seen}, err
}

// changeInPlace returns a spec that keeps the children's names, and that the operator fulfils if nothing interferes. If
// it finds none, it returns one that the operator doesn't fulfil, so the behaviour that uses the spec fails. The result
// is nil if no spec is known that keeps the names.
func changeInPlace(ctx context.Context, runner *trial.Runner) (map[string]any, error) {
	found, err := runner.Once("change in place", func() (any, error) {
		first, err := runner.OtherSpecInPlace(ctx)
		if err != nil || first == nil || changeUndisturbed(ctx, runner, first) == nil {
			return first, err
		}
		others, err := alternatives(ctx, runner, true)
		if err != nil {
			return nil, err
		}
		for _, other := range others {
			if changeUndisturbed(ctx, runner, other) == nil {
				return other, nil
			}
		}
		return first, nil
	})
	change, _ := found.(map[string]any)
	return change, err
}

// changeUndisturbed changes the sample's spec, and returns an error unless the change has an effect, and the resource
// then reaches the same final state as a new one with that spec.
func changeUndisturbed(ctx context.Context, runner *trial.Runner, spec map[string]any) error {
	life, err := newLifecycle(ctx, runner, spec)
	if err != nil {
		return err
	}
	candidate := specgen.Candidate{What: "the spec to " + specgen.OneLine(spec), To: spec}
	return runner.Reference(ctx, "the sample's spec is changed to "+specgen.OneLine(spec), func(ctx context.Context, t *trial.Trial) error {
		return applyUpdate(ctx, t, nil, life.made, candidate, life.changed)
	})
}

// alternatives tries out a change to each field of the sample, one field at a time. If some of these changes fail and
// others succeed, it returns up to maxAlternatives specs that change only fields whose changes succeed: first all of
// them, and then one at a time. Otherwise it returns none. If inPlace is true, the children keep their names.
func alternatives(ctx context.Context, runner *trial.Runner, inPlace bool) ([]map[string]any, error) {
	known, err := runner.Specs(ctx)
	if err != nil {
		return nil, err
	}
	changes, _ := known.Changes()
	changes = slices.DeleteFunc(changes, func(change specgen.Change) bool { return !change.Effective || !specgen.Same(change.From, known.Base) })
	keepsNames := func(spec map[string]any) bool {
		return !inPlace || slices.Equal(runner.ChildNames(spec), runner.ChildNames(known.Base))
	}
	good := make([]map[string]any, len(changes))
	err = trial.Each(ctx, len(changes), func(ctx context.Context, i int) error {
		var specs []map[string]any
		for _, candidate := range changes[i].Candidates {
			if keepsNames(candidate.To) {
				specs = append(specs, candidate.To)
			}
		}
		spec, err := runner.FirstAllowed(ctx, specs)
		if err == nil && spec != nil && changeUndisturbed(ctx, runner, spec) == nil {
			good[i] = spec
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var bad []string
	for i, change := range changes {
		if good[i] == nil {
			bad = append(bad, change.Place)
		}
	}
	good = slices.DeleteFunc(good, func(spec map[string]any) bool { return spec == nil })
	if len(bad) == 0 || len(good) == 0 {
		return nil, nil
	}
	if most := known.OtherThan(bad); keepsNames(most) {
		good = slices.Insert(good, 0, most)
	}
	return good[:min(len(good), maxAlternatives)], nil
}

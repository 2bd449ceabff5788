package behaviours

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"example.com/operator-workshop/operatortest/internal/trial"
)

// maxWrites bounds the writes of an operator in one lifecycle, because each of them needs a trial of its own. If an
// operator makes more, it fails the behaviour.
const maxWrites = 60

var crash = behaviour{
	name:    "crash",
	promise: "resumes its work after it is killed, whichever write the kill interrupts: nothing is lost, and nothing exists twice",
	advice: "state that is kept between two writes: a crash erases memory, so read the actual state again in every reconcile; do the work first, then record that " +
		"it is done, and make the work idempotent: derive names from the resource, and use its UID as the key in external systems; " +
		"when a resource is deleted, clean up first and remove the finalizer last",
	check: func(ctx context.Context, runner *trial.Runner) error {
		life, writes, err := undisturbed(ctx, runner)
		if err != nil {
			return err
		}
		if len(writes) == 0 {
			return errors.New("expected the operator to write while a resource is created, changed and deleted\nfound no write at which to kill it")
		}
		if len(writes) > maxWrites {
			return fmt.Errorf("expected the operator to need at most %d writes for a resource's whole lifecycle\nfound %d: %v", maxWrites, len(writes), writes)
		}
		var struck atomic.Bool
		err = trial.Each(ctx, len(writes), func(ctx context.Context, i int) error {
			reached, err := crashAround(ctx, runner, life, writes[i], writes)
			if reached {
				struck.Store(true)
			}
			return err
		})
		if err == nil && !struck.Load() && runner.OnlyTrial == "" {
			return fmt.Errorf("expected the operator to repeat its writes in a second lifecycle, so that it can be killed at one of them\nfound that it repeated none of these: %v", writes)
		}
		return err
	},
}

// crashAround kills one operator right before a write, and its successor right after the same write, in one trial.
// Depending on timing, an operator may never make that write; crashAround then tries once more to cause each crash that
// did not happen. If there is no error, it reports whether any operator was killed.
func crashAround(ctx context.Context, runner *trial.Runner, life *lifecycle, target write, recorded []write) (struck bool, err error) {
	alone := &crashPoint{target: target, recorded: recorded}
	nameAlone := fmt.Sprintf("after %s", target)
	if runner.IsOnly(ctx, nameAlone) {
		err := playCrashes(ctx, runner.Try, life, nameAlone, alone)
		return alone.struck(), err
	}
	for range 2 {
		before := &crashPoint{target: target, before: true, recorded: recorded}
		// The first operator is killed right before the target, so its successor's first write with that description is the
		// target again.
		after := &crashPoint{target: write{what: target.what, nth: 1}, recorded: recorded}
		err := playCrashes(ctx, runner.Try, life, fmt.Sprintf("before %s, then after it", target), before, after)
		if err != nil || after.struck() {
			return true, err
		}
		if before.struck() {
			return true, playCrashes(ctx, runner.Try, life, nameAlone, alone)
		}
	}
	return false, nil
}

// tryFunc is one of the Runner's ways to run an experiment.
type tryFunc func(ctx context.Context, name string, experiment func(context.Context, *trial.Trial) error) error

// playCrashes runs a lifecycle. Each operator has the next crash point, or none after the last point; when an operator
// is killed, another one continues the work.
func playCrashes(ctx context.Context, try tryFunc, life *lifecycle, name string, points ...*crashPoint) error {
	return try(ctx, name, func(ctx context.Context, t *trial.Trial) error {
		operators := &supervisor{Trial: t, crashPoints: slices.Clone(points)}
		operators.start()
		operators.synced = true // other behaviours observe the start of an operator that was never killed
		defer func() { operators.restore() }()
		t.BeforeLook = operators.restartKilled
		err := runLifecycle(ctx, t, life, operators.waitSynced)
		for _, point := range slices.Backward(points) {
			switch {
			case point.struck() && err != nil:
				err = fmt.Errorf("an operator was killed right %s\n%w", point, err)
			case !point.struck() && point.target != (write{}):
				t.Remark = fmt.Sprintf("no operator was killed %s, because none made that write", point)
			}
		}
		return err
	})
}

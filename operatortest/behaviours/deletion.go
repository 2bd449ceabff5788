package behaviours

import (
	"context"
	"errors"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

var deletion = behaviour{
	name:    "deletion",
	promise: "lets go of a deleted resource, and leaves nothing of it behind",
	advice: "the deletion branch: it runs before the finalizer is added, may run twice, and takes the finalizer off last; " +
		"children without an owner reference are not garbage-collected",
	check: func(ctx context.Context, runner *trial.Runner) error {
		cases := []trial.Case{
			{Name: "the operator runs", Try: deleteRunning},
			{Name: "the operator is down", Try: deleteWhileDown},
		}
		if runner.Operator.External != nil {
			cases = append(cases, trial.Case{Name: "what is outside Kubernetes can't be reached", Try: deleteDuringOutage})
		}
		return runner.TryAll(ctx, cases)
	},
}

func deleteRunning(ctx context.Context, t *trial.Trial) error {
	resource := t.Resource(nil)
	if _, err := t.Establish(ctx, t.Start(operatortest.RunOptions{}), resource); err != nil {
		return err
	}
	return errors.Join(t.Delete(ctx, resource), t.WaitGone(ctx, resource, "the operator runs all the time"))
}

// deleteWhileDown deletes when no operator runs: a new one finds the resource on its way out, or gone.
func deleteWhileDown(ctx context.Context, t *trial.Trial) error {
	resource := t.Resource(nil)
	operator := t.Start(operatortest.RunOptions{})
	if _, err := t.Establish(ctx, operator, resource); err != nil {
		return err
	}
	if err := operator.Stop(); err != nil {
		return err
	}
	if err := t.Delete(ctx, resource); err != nil {
		return err
	}
	t.Start(operatortest.RunOptions{})
	return t.WaitGone(ctx, resource, "the operator was down when the resource was deleted, and came back")
}

// deleteDuringOutage deletes while the world outside can't be reached.
func deleteDuringOutage(ctx context.Context, t *trial.Trial) error {
	resource := t.Resource(nil)
	if _, err := t.Establish(ctx, t.Start(operatortest.RunOptions{}), resource); err != nil {
		return err
	}
	restore := t.Operator.External.Fail(t.Namespace)
	defer restore()
	if err := t.Delete(ctx, resource); err != nil {
		return err
	}
	exists := func(ctx context.Context) error { return t.Get(ctx, resource) }
	if err := t.Throughout(ctx, watchedFor, "the resource to wait until the world outside is clean", exists); err != nil {
		return err
	}
	restore()
	return t.WaitGone(ctx, resource, "the world outside could not be reached for a while")
}

package behaviours

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

var deletion = behaviour{
	name:    "deletion",
	promise: "leaves nothing behind when a resource is deleted, and removes its finalizer, if it uses one, last",
	advice: "the deletion branch: it must run before a finalizer is added, must tolerate running twice, and must remove the finalizer last; " +
		"a deleted resource without the operator's finalizer needs no more work, even if others' finalizers keep it for a long time; " +
		"children without an owner reference are not garbage-collected",
	check: func(ctx context.Context, runner *trial.Runner) error {
		cases := []trial.Case{
			{Name: "the operator is running", Try: deleteRunning},
			{Name: "the operator is down", Try: deleteWhileDown},
			{Name: "another finalizer holds it", Try: deleteWhileHeld},
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
	return errors.Join(t.Delete(ctx, resource), t.WaitGone(ctx, resource, "the operator was running all the time"))
}

// deleteWhileDown deletes a resource while no operator is running. A new operator then finds the resource terminating,
// or gone.
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

// deleteDuringOutage deletes a resource while the external system can't be reached. Until the operator can clean up
// there, the resource must stay.
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
	if err := t.Throughout(ctx, watchedFor, "the resource to exist until what is outside Kubernetes is cleaned up", exists); err != nil {
		return err
	}
	restore()
	return t.WaitGone(trial.Patiently(ctx), resource, "the external system could not be reached for a while")
}

// foreignFinalizer is a finalizer that the operator doesn't know.
const foreignFinalizer = "someone-else.example.com/finalizer"

// deleteWhileHeld deletes a resource that has someone else's finalizer. Once the operator has cleaned up and has
// removed its own finalizer, if it uses one, it must leave the resource alone.
func deleteWhileHeld(ctx context.Context, t *trial.Trial) error {
	resource := t.Resource(nil)
	resource.SetFinalizers(append(resource.GetFinalizers(), foreignFinalizer))
	operator := t.Start(operatortest.RunOptions{})
	if _, err := t.Establish(ctx, operator, resource); err != nil {
		return err
	}
	if err := t.Delete(ctx, resource); err != nil {
		return err
	}
	what := "the operator to clean up and to remove only its own finalizer, while " + foreignFinalizer + " holds the resource"
	if err := t.Await(ctx, what, func(ctx context.Context) error { return cleanedUp(ctx, t, resource) }); err != nil {
		return err
	}
	if err := t.WaitAtRest(ctx, operator); err != nil {
		return err
	}
	before := len(operator.Writes())
	if err := t.Touch(ctx, resource); err != nil {
		return err
	}
	if err := expectSilence(ctx, t, operator, before, watchedFor, "another finalizer holds the resource, and someone else applies the spec that it has already"); err != nil {
		return err
	}
	if err := t.Patch(ctx, resource, `{"metadata":{"finalizers":null}}`); err != nil {
		return err
	}
	return t.WaitGone(ctx, resource, "another finalizer held the resource for a while")
}

// cleanedUp returns an error unless the resource has only someone else's finalizer, and nothing is left outside
// Kubernetes.
func cleanedUp(ctx context.Context, t *trial.Trial, resource *unstructured.Unstructured) error {
	if err := t.Get(ctx, resource); err != nil {
		return err
	}
	if finalizers := resource.GetFinalizers(); !slices.Equal(finalizers, []string{foreignFinalizer}) {
		return fmt.Errorf("its finalizers are %q", finalizers)
	}
	if t.Operator.External == nil {
		return nil
	}
	left, err := t.Operator.External.Snapshot(ctx, t.Namespace)
	if err == nil && left != "" {
		err = fmt.Errorf("the operator's finalizer is gone, but this is left outside Kubernetes:\n%s", left)
	}
	return err
}

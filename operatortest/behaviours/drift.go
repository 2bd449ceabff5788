package behaviours

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
)

var drift = behaviour{
	name:    "drift",
	promise: "restores children that others delete or change, and leaves alone what others add",
	advice: "the watch on the children, and how they are compared: compare every field that the operator sets, and write only those; " +
		"an update with a newly built object, instead of the existing one with changes, wipes out others' fields; in a list, such as a container's env, set your own entries " +
		"by their names and keep the rest, or use server-side apply: container.Env = … removes what others have added; if the list is yours alone, leave out drift/env, and say why",
	needsChild: true,
	check: func(ctx context.Context, runner *trial.Runner) error {
		var cases []driftCase
		for i, child := range runner.Operator.Children {
			cases = append(cases, driftCase{child: i, what: "deleted"})
			for k, what := range slices.Sorted(maps.Keys(child.Drift)) {
				cases = append(cases, driftCase{child: i, what: what, patch: child.Drift[what], restarts: k == 0})
			}
		}
		wanted, err := runner.Fresh(ctx, nil)
		if err != nil {
			return err
		}
		return trial.Each(ctx, len(cases), func(ctx context.Context, i int) error {
			name := fmt.Sprintf("%s: %s", runner.Operator.Children[cases[i].child].Kind.Kind, cases[i].what)
			return runner.Try(ctx, name, func(ctx context.Context, t *trial.Trial) error { return tryDrift(ctx, t, cases[i], wanted) })
		})
	},
}

// driftCase is one disturbance of one declared child: a patch, or the child's deletion.
type driftCase struct {
	child       int
	what, patch string
	// restarts means that the operator is killed at the end, and that its successor must keep others' fields, too.
	restarts bool
}

func tryDrift(ctx context.Context, t *trial.Trial, disturbance driftCase, wanted state.Snapshot) error {
	resource, operator := t.Resource(nil), t.Start(operatortest.RunOptions{})
	if _, err := t.Establish(ctx, operator, resource); err != nil {
		return err
	}
	declared := t.Operator.Children[disturbance.child]
	child, err := t.Child(ctx, declared, resource)
	if err != nil {
		return err
	}
	if child == nil {
		return fmt.Errorf("expected the sample to have each child of Operator.Children\nfound no name for its %s: "+
			"use a sample with this child, because otherwise nothing tests whether it comes back", declared.Kind.Kind)
	}
	what := fmt.Sprintf("%s %s to be restored after a change: %s", child.GetKind(), child.GetName(), disturbance.what)
	if disturbance.patch == "" {
		if err := t.Delete(ctx, child); err != nil {
			return err
		}
		return t.ConvergeTo(ctx, resource, wanted, what)
	}
	foreign, err := t.PatchForeign(ctx, declared, child)
	if err != nil {
		return err
	}
	before, patch := child.DeepCopy(), t.Fill(disturbance.patch)
	if err := t.Patch(ctx, child, patch); err != nil {
		return err
	}
	if err := t.WaitRepaired(ctx, child, trial.ChangedFields(patch, before, child), what); err != nil {
		return err
	}
	if err := t.Reapply(ctx, declared, child); err != nil {
		return err
	}
	wanted, err = wanted.With(t.Key(child), foreign)
	if err != nil {
		return err
	}
	if err := t.ConvergeTo(ctx, resource, wanted, what+"; and others' fields to stay"); err != nil || !disturbance.restarts {
		return err
	}
	if err := operator.Kill(); err != nil {
		return err
	}
	if err := t.WaitSynced(ctx, t.Start(operatortest.RunOptions{})); err != nil {
		return err
	}
	return t.ConvergeTo(ctx, resource, wanted, "what others wrote to "+child.GetKind()+" "+child.GetName()+" to stay when the operator is restarted")
}

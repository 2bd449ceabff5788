package behaviours

import (
	"context"

	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// lifecycle describes how a resource is created, changed and deleted, and the states that it must reach.
type lifecycle struct {
	// change is the spec to which the sample's spec is changed.
	change map[string]any
	// made and changed are the final states of fresh resources with the sample's spec and with change.
	made, changed state.Snapshot
	// remark says which change is tried in place of others that fail. It is empty if the first change that was tried
	// succeeded.
	remark string
}

func newLifecycle(ctx context.Context, runner *trial.Runner, change map[string]any) (*lifecycle, error) {
	made, err := runner.Fresh(ctx, nil)
	if err != nil {
		return nil, err
	}
	changed, err := runner.Fresh(ctx, change)
	if err != nil {
		return nil, err
	}
	return &lifecycle{change: change, made: made, changed: changed}, expectEffect(runner, change, made, changed)
}

// runLifecycle runs a whole lifecycle, and records the children's history. When created and when changed, the resource
// must reach the final state of a fresh one with the same spec; when deleted, it must leave nothing behind except
// retained children. The hook runs at the end of each phase, before the state is checked again.
func runLifecycle(ctx context.Context, t *trial.Trial, life *lifecycle, hook func(context.Context) error) error {
	defer t.Follow()()
	t.Remark = life.remark
	resource := t.Resource(nil)
	phases := []struct {
		begin, end func() error
	}{
		{
			begin: func() error { return t.Create(ctx, resource) },
			end: func() error {
				return t.ConvergeTo(ctx, resource, life.made, "the new resource to reach the same final state as any other")
			},
		},
		{
			begin: func() error { return t.SetSpec(ctx, resource, life.change) },
			end: func() error {
				return t.ConvergeTo(ctx, resource, life.changed, "the changed resource to reach the same final state as one that had this spec from the beginning")
			},
		},
		{
			begin: func() error { return t.Delete(ctx, resource) },
			end:   func() error { return t.WaitGone(ctx, resource, "it was created, changed and deleted") },
		},
	}
	for _, phase := range phases {
		if err := phase.begin(); err != nil {
			return err
		}
		if err := phase.end(); err != nil {
			return err
		}
		if err := hook(ctx); err != nil {
			return err
		}
		if err := phase.end(); err != nil {
			return err
		}
	}
	return t.NoteHistory()
}

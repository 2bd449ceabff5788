package load

import (
	"context"
	"errors"
	"time"
)

// baselineRuns is how many times the children are created without the operator. These runs come between two measurements
// with the operator, so that a control plane that gets slower affects the times with and without the operator equally.
const baselineRuns = 2

// compare measures how long the children take to converge without the operator. They are created by as many writers as
// the resources were. At the end, it starts the operator again, and measures once more how long the resources take.
// If there are no children, it measures nothing.
func (m Measurement) compare(ctx context.Context, ground *ground, found *figures, children load) error {
	if len(children.sets) == 0 {
		m.note(found.resources, "the operator made no objects, so there is nothing to compare with")
		return nil
	}
	for range baselineRuns {
		m.note(found.resources, "creating their %d children without an operator", len(children.objects()))
		if err := rest(ctx, m.restTime()); err != nil {
			return err
		}
		converged, err := ground.converge(ctx, nil, children)
		if err != nil {
			return err
		}
		found.baseline = append(found.baseline, converged.took())
		m.note(found.resources, "converged after %s", seconds(converged.took()))
		if err := ground.remove(ctx, children); err != nil {
			return err
		}
	}
	return m.lastLife(ctx, ground, found)
}

// lastLife measures again how long the resources take to converge.
func (m Measurement) lastLife(ctx context.Context, ground *ground, found *figures) error {
	running, err := ground.run(ctx, "last")
	if err != nil {
		return err
	}
	m.note(found.resources, "creating them once more")
	err = rest(ctx, m.restTime())
	var converged *convergence
	if err == nil {
		converged, err = ground.converge(ctx, running, ground.plan.resources(found.resources))
	}
	if err := errors.Join(err, running.stop()); err != nil {
		return err
	}
	found.with = append(found.with, converged.took())
	m.note(found.resources, "converged after %s", seconds(converged.took()))
	return nil
}

// rest waits for the given time, so that the control plane can finish the work that the last deletion has left.
func rest(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

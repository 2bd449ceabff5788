package load

import (
	"context"
	"errors"
	"time"
)

// firstLife measures a controller from the first resource to the end of the idle phase, and returns when that phase
// ended.
func (m Measurement) firstLife(ctx context.Context, ground *ground, found *figures) (time.Time, error) {
	running, err := ground.run(ctx, "first")
	if err != nil {
		return time.Time{}, err
	}
	end, err := m.observe(ctx, ground, running, found)
	err = errors.Join(err, running.stop())
	found.peak = running.peak
	return end, err
}

func (m Measurement) observe(ctx context.Context, ground *ground, running *operator, found *figures) (time.Time, error) {
	before, err := running.processorTime()
	if err != nil {
		return time.Time{}, err
	}
	m.note(found.resources, "creating them")
	converged, err := ground.converge(ctx, running, ground.plan.resources(found.resources))
	if err != nil {
		return time.Time{}, err
	}
	busy, err := running.processorTime()
	if err != nil {
		return time.Time{}, err
	}
	found.created, found.with = converged.created.Sub(converged.began), []time.Duration{converged.took()}
	found.latencies, found.busyTime = converged.latencies(), busy-before
	m.note(found.resources, "converged after %s", seconds(converged.took()))

	settled, err := m.settle(ctx, ground, running, converged.last)
	if err != nil {
		return time.Time{}, err
	}
	calm, err := running.processorTime()
	if err != nil {
		return time.Time{}, err
	}
	m.note(found.resources, "idling for %s", m.Idle)
	end := settled.Add(m.Idle)
	if err := running.wait(ctx, func() (bool, error) { return !time.Now().Before(end), nil }); err != nil {
		return time.Time{}, err
	}
	used, err := running.processorTime()
	if err != nil {
		return time.Time{}, err
	}
	found.idleTime = used - calm
	if err := ground.audit.read(); err != nil {
		return time.Time{}, err
	}
	found.converge = count(ground.audit.between(converged.began, converged.last))
	found.settle = count(ground.audit.between(converged.last, settled))
	found.idle = count(ground.audit.between(settled, end))
	return end, nil
}

// secondLife measures a new process on a cluster that has converged. Then it deletes all resources while the process
// is running, and returns the children that they had.
func (m Measurement) secondLife(ctx context.Context, ground *ground, found *figures, since time.Time) (children load, err error) {
	m.note(found.resources, "starting the controller once more")
	started := time.Now()
	running, err := ground.run(ctx, "second")
	if err != nil {
		return load{}, err
	}
	defer func() { err = errors.Join(err, running.stop()) }()
	settled, err := m.settle(ctx, ground, running, started)
	if err != nil {
		return load{}, err
	}
	found.restart = count(ground.audit.between(started, settled))
	if left := ground.audit.between(since, started); len(left) > 0 {
		m.note(found.resources, "no figure includes the requests that the controller made while it stopped: %d", len(left))
	}
	m.note(found.resources, "deleting them")
	resources := ground.plan.resources(found.resources)
	children, err = ground.children(ctx, resources)
	if err != nil {
		return load{}, err
	}
	return children, ground.remove(ctx, resources)
}

// settle waits for a period of restTime without a request from the controller. The period may not begin before since.
// The wait ends calmTimeout after since at the latest. settle returns the time at which the wait ended.
func (m Measurement) settle(ctx context.Context, ground *ground, running *operator, since time.Time) (time.Time, error) {
	var now time.Time
	err := running.wait(ctx, func() (bool, error) {
		now = time.Now()
		if err := ground.audit.read(); err != nil {
			return false, err
		}
		last := ground.audit.last()
		if last.Before(since) {
			last = since
		}
		return now.Sub(last) >= m.restTime() || now.Sub(since) >= calmTimeout, nil
	})
	return now, err
}

// restTime returns calmAfter, or the shorter time that a test has set.
func (m Measurement) restTime() time.Duration {
	if m.calm == 0 {
		return calmAfter
	}
	return m.calm
}

package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// calmAfter is how long no request has come when the controller counts as quiet.
	calmAfter = 5 * time.Second
	// calmTimeout bounds the wait for that; requests after it count as idle ones.
	calmTimeout = 30 * time.Second
)

// Bench measures the controller of one stage.
type Bench struct {
	// Stage is the stage's folder.
	Stage string
	// Resources are the numbers of resources to measure with, each on a control plane of its own.
	Resources []int
	// Idle is how long a converged controller is watched.
	Idle time.Duration
	// Out receives Markdown tables of the figures, Log what is being done.
	Out, Log io.Writer

	// calm replaces calmAfter in tests.
	calm time.Duration
}

// figures are what was measured with one number of resources.
type figures struct {
	resources int
	// created and converged are counted from the beginning of the first creation.
	created, converged time.Duration
	latencies          []time.Duration
	// Requests of each phase.
	converge, settle, idle, restart tally
	// Processor time of the first process up to convergence and while idle.
	busyTime, idleTime time.Duration
	// peak is the most memory of the first process, in bytes.
	peak int64
}

// Run builds the stage, measures and prints the tables. It leaves nothing running.
func (b Bench) Run(ctx context.Context) error {
	if strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true") {
		return errors.New("the load is measured on control planes made for it: unset USE_EXISTING_CLUSTER")
	}
	stage, err := filepath.Abs(b.Stage)
	if err != nil {
		return fmt.Errorf("find the stage: %w", err)
	}
	b.Stage = stage
	plan, err := readPlan(stage)
	if err != nil {
		return err
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "workshop-load-")
	if err != nil {
		return fmt.Errorf("make a scratch folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	// A copy: a build in the stage's folder must not change what is measured.
	program := filepath.Join(scratch, "manager")
	if err := copyProgram(filepath.Join(stage, "bin", "manager"), program); err != nil {
		return err
	}
	var measured []figures
	for _, resources := range b.Resources {
		found, err := b.measure(ctx, plan, program, resources)
		if err != nil {
			return fmt.Errorf("%s with %d resources: %w", filepath.Base(stage), resources, err)
		}
		measured = append(measured, found)
	}
	printTables(b.Out, filepath.Base(stage), plan.IdealWrites, b.Idle, measured)
	return nil
}

func (b Bench) build(ctx context.Context) error {
	command := exec.CommandContext(ctx, "make", "-C", b.Stage, "build")
	command.Stdout, command.Stderr = b.Log, b.Log
	if err := command.Run(); err != nil {
		return fmt.Errorf("make -C %s build: %w", b.Stage, err)
	}
	return nil
}

func copyProgram(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("read what `make build` makes: %w", err)
	}
	if err := os.WriteFile(to, content, 0o700); err != nil {
		return fmt.Errorf("copy the controller: %w", err)
	}
	return nil
}

func (b Bench) note(resources int, format string, args ...any) {
	fmt.Fprintf(b.Log, "%s, %d resources: %s\n", filepath.Base(b.Stage), resources, fmt.Sprintf(format, args...))
}

// measure takes one number of resources through all phases.
func (b Bench) measure(ctx context.Context, plan *plan, program string, resources int) (found figures, err error) {
	b.note(resources, "starting a control plane")
	ground := &ground{plan: plan, program: program}
	defer func() { err = errors.Join(err, ground.close()) }()
	if err := ground.prepare(ctx, b.Stage, resources); err != nil {
		return figures{}, err
	}
	found.resources = resources
	idleEnd, err := b.firstLife(ctx, ground, &found)
	if err != nil {
		return figures{}, err
	}
	return found, b.secondLife(ctx, ground, &found, idleEnd)
}

// firstLife measures a controller from the first resource to the end of the idle phase.
func (b Bench) firstLife(ctx context.Context, ground *ground, found *figures) (time.Time, error) {
	running, err := ground.run(ctx, "first")
	if err != nil {
		return time.Time{}, err
	}
	end, err := b.observe(ctx, ground, running, found)
	err = errors.Join(err, running.stop())
	found.peak = running.peak
	return end, err
}

func (b Bench) observe(ctx context.Context, ground *ground, running *operator, found *figures) (time.Time, error) {
	before, err := running.processorTime()
	if err != nil {
		return time.Time{}, err
	}
	b.note(found.resources, "creating them")
	converged, err := ground.converge(ctx, running, found.resources)
	if err != nil {
		return time.Time{}, err
	}
	busy, err := running.processorTime()
	if err != nil {
		return time.Time{}, err
	}
	found.created, found.converged = converged.created.Sub(converged.began), converged.last.Sub(converged.began)
	found.latencies, found.busyTime = converged.latencies(ground.plan), busy-before
	b.note(found.resources, "converged after %s", seconds(found.converged))

	settled, err := b.settle(ctx, ground, running, converged.last)
	if err != nil {
		return time.Time{}, err
	}
	calm, err := running.processorTime()
	if err != nil {
		return time.Time{}, err
	}
	b.note(found.resources, "idling for %s", b.Idle)
	end := settled.Add(b.Idle)
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

// secondLife measures a new process on a cluster that has converged.
func (b Bench) secondLife(ctx context.Context, ground *ground, found *figures, since time.Time) error {
	b.note(found.resources, "starting the controller once more")
	started := time.Now()
	running, err := ground.run(ctx, "second")
	if err != nil {
		return err
	}
	settled, err := b.settle(ctx, ground, running, started)
	if err := errors.Join(err, running.stop()); err != nil {
		return err
	}
	found.restart = count(ground.audit.between(started, settled))
	if left := ground.audit.between(since, started); len(left) > 0 {
		b.note(found.resources, "the ending controller made %d more requests, which no figure counts", len(left))
	}
	return nil
}

// settle waits until no request has come for a while, and returns when that is
// so, or when it gives up waiting.
func (b Bench) settle(ctx context.Context, ground *ground, running *operator, since time.Time) (time.Time, error) {
	calm := b.calm
	if calm == 0 {
		calm = calmAfter
	}
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
		return now.Sub(last) >= calm || now.Sub(since) >= calmTimeout, nil
	})
	return now, err
}

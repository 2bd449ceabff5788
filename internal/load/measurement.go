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
	// calmAfter is how long the controller must send no request before it counts as idle. The control plane rests for the
	// same time before each timed creation of objects except the first.
	calmAfter = 5 * time.Second
	// calmTimeout bounds the wait until the controller is idle. After that, the next phase begins, even if the controller
	// still sends requests.
	calmTimeout = 30 * time.Second
)

// Measurement says what to measure about one stage's controller, and how.
type Measurement struct {
	// Stage is the stage's folder.
	Stage string
	// Resources are the numbers of resources to measure with. Each gets its own control plane.
	Resources []int
	// Idle is how long to measure the idle controller.
	Idle time.Duration
	// Out receives the figures as Markdown tables, and Log the progress.
	Out, Log io.Writer

	// calm replaces calmAfter in tests.
	calm time.Duration
}

// figures are what was measured with one number of resources.
type figures struct {
	resources int
	// created is how long it took to create all resources the first time.
	created time.Duration
	// with is how long all resources took to converge, the first and the last time. baseline is how long their children
	// took without the operator.
	with, baseline []time.Duration
	// latencies is how long each resource took to converge the first time.
	latencies []time.Duration
	// The next fields count the requests of the phases with these names.
	converge, settle, idle, restart tally
	// busyTime is the processor time that the first process used while the resources converged, and idleTime is what it
	// used while idle.
	busyTime, idleTime time.Duration
	// peak is the peak memory of the first process, in bytes.
	peak int64
}

// Run builds the stage, measures its controller and prints the tables. It leaves nothing running.
func (m Measurement) Run(ctx context.Context) error {
	if strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true") {
		return errors.New("the load is measured on control planes made for it: unset USE_EXISTING_CLUSTER")
	}
	stage, err := filepath.Abs(m.Stage)
	if err != nil {
		return fmt.Errorf("find the stage: %w", err)
	}
	m.Stage = stage
	plan, err := readPlan(stage)
	if err != nil {
		return err
	}
	if err := m.build(ctx); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "workshop-load-")
	if err != nil {
		return fmt.Errorf("make a scratch folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	// Measure a copy, so that a rebuild in the stage's folder can't affect the measurement.
	program := filepath.Join(scratch, "manager")
	if err := copyProgram(filepath.Join(stage, "bin", "manager"), program); err != nil {
		return err
	}
	var measured []figures
	for _, resources := range m.Resources {
		found, err := m.measure(ctx, plan, program, resources)
		if err != nil {
			return fmt.Errorf("%s with --resources=%d: %w", filepath.Base(stage), resources, err)
		}
		measured = append(measured, found)
	}
	printTables(m.Out, filepath.Base(stage), plan.IdealWrites, m.Idle, measured)
	return nil
}

func (m Measurement) build(ctx context.Context) error {
	command := exec.CommandContext(ctx, "make", "-C", m.Stage, "build")
	command.Stdout, command.Stderr = m.Log, m.Log
	if err := command.Run(); err != nil {
		return fmt.Errorf("make -C %s build: %w", m.Stage, err)
	}
	return nil
}

func copyProgram(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("read the program that `make build` makes: %w", err)
	}
	if err := os.WriteFile(to, content, 0o700); err != nil {
		return fmt.Errorf("copy the controller: %w", err)
	}
	return nil
}

func (m Measurement) note(resources int, format string, args ...any) {
	fmt.Fprintf(m.Log, "%s, %d resources: %s\n", filepath.Base(m.Stage), resources, fmt.Sprintf(format, args...))
}

// measure goes through all phases with one number of resources.
func (m Measurement) measure(ctx context.Context, plan *plan, program string, resources int) (found figures, err error) {
	m.note(resources, "starting a control plane")
	ground := &ground{plan: plan, program: program}
	defer func() { err = errors.Join(err, ground.close()) }()
	if err := ground.prepare(ctx, m.Stage, resources); err != nil {
		return figures{}, err
	}
	found.resources = resources
	idleEnd, err := m.firstLife(ctx, ground, &found)
	if err != nil {
		return figures{}, err
	}
	children, err := m.secondLife(ctx, ground, &found, idleEnd)
	if err != nil {
		return figures{}, err
	}
	return found, m.compare(ctx, ground, &found, children)
}

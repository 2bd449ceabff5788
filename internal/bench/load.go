package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"example.com/operator-workshop/internal/procgroup"
	"example.com/operator-workshop/internal/repo"
)

// loadProgram measures one stage under load. It is built on demand. Its source says why it is a separate program.
const loadProgram = "./internal/load/loadbench"

// loadGrace is how long loadProgram may take to stop its control plane and its controller after Ctrl-C.
const loadGrace = time.Minute

// LoadOptions say how the controllers of the stages are measured under load.
type LoadOptions struct {
	// Stage is the number of the stage to measure. If it is empty, every stage with a config/bench/load.yaml is measured.
	Stage string
	// Resources are the numbers of resources to measure with, separated by commas.
	Resources string
	// Idle is how long each idle controller is measured.
	Idle time.Duration
}

// CheckLoad checks the options. Its error says what to correct.
func (b Bench) CheckLoad(load LoadOptions) error {
	if _, err := ParseResources(load.Resources); err != nil {
		return err
	}
	if load.Idle <= 0 {
		return fmt.Errorf("--idle=%s: give a positive duration, such as 60s", load.Idle)
	}
	_, err := b.loadStages(load.Stage)
	return err
}

// ParseResources reads positive numbers, separated by commas. It fails if the list contains anything else.
func ParseResources(list string) ([]int, error) {
	var numbers []int
	for text := range strings.SplitSeq(list, ",") {
		number, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || number < 1 {
			return nil, fmt.Errorf("--resources=%s: give positive numbers, such as 100,500,1000", list)
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// Loads measures controllers under load and prints tables.
func (b Bench) Loads(ctx context.Context, load LoadOptions) error {
	stages, err := b.loadStages(load.Stage)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "workshop-bench-")
	if err != nil {
		return fmt.Errorf("make a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	program := filepath.Join(scratch, "loadbench")
	fmt.Fprintln(b.Log, "$ go build", loadProgram)
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, loadProgram)
	build.Dir, build.Env = b.Repo.Root, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	build.Stdout, build.Stderr = b.Log, b.Log
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build %s: %w", loadProgram, err)
	}
	for _, stage := range stages {
		if err := b.load(ctx, program, stage, load); err != nil {
			return err
		}
	}
	return nil
}

func (b Bench) load(ctx context.Context, program string, stage repo.Stage, load LoadOptions) error {
	command := exec.CommandContext(ctx, program,
		"--stage="+filepath.Base(stage.Dir), "--resources="+load.Resources, "--idle="+load.Idle.String())
	command.Dir = b.Repo.Root
	command.Stdout, command.Stderr = b.Out, b.Log
	if err := procgroup.Run(command, loadGrace); err != nil {
		return fmt.Errorf("measure the load of stage %d: %w (see its message above)", stage.Number, err)
	}
	return nil
}

// loadStages returns all stages that can be measured or, if a number is given, only that stage. It fails if that stage
// can't be measured.
func (b Bench) loadStages(number string) ([]repo.Stage, error) {
	all, err := b.Repo.Stages()
	if err != nil {
		return nil, err
	}
	var measurable []repo.Stage
	var names []string
	for _, stage := range all {
		if _, err := os.Stat(filepath.Join(stage.Dir, "config", "bench", "load.yaml")); stage.Dir != "" && err == nil {
			measurable = append(measurable, stage)
			names = append(names, strconv.Itoa(stage.Number))
		}
	}
	if number == "" {
		return measurable, nil
	}
	wanted, err := b.Repo.Stage(number)
	if err != nil {
		return nil, err
	}
	for _, stage := range measurable {
		if stage.Number == wanted.Number {
			return []repo.Stage{stage}, nil
		}
	}
	return nil, fmt.Errorf("stage %d has no config/bench/load.yaml, so its load can't be measured; the stages that have one: %s", wanted.Number, strings.Join(names, ", "))
}

// Package bench takes the measurements for docs/benchmarks.md: how long the tools take to build, how long it takes to
// start, reset and remove classroom clusters, what they cost while idle, how long the stages' tests take, and what
// controllers cost under load.
package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/repo"
	"example.com/operator-workshop/internal/toolchain"
)

const (
	// crowd is how many clusters are measured at the same time.
	crowd = 5
	// settle is how long a new cluster is left alone before it counts as idle.
	settle = 20 * time.Second
	// idle is how long the load of idle clusters is measured.
	idle = 30 * time.Second
)

// Bench measures one checkout on this machine.
type Bench struct {
	Repo repo.Repo
	// Runs is how many times Clusters and Tests measure each duration.
	Runs int
	// Out receives the figures, most of them as rows of Markdown tables, and Log the progress.
	Out, Log io.Writer
}

// Build compiles every tool of the main set, starting with an empty compiler cache, and prints the time of each.
// Modules that are already downloaded are not downloaded again. Build changes GOCACHE for the whole process.
func (b Bench) Build(ctx context.Context) error {
	scratch, err := os.MkdirTemp("", "workshop-bench-")
	if err != nil {
		return fmt.Errorf("make a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	if err := os.Setenv("GOCACHE", filepath.Join(scratch, "go-build")); err != nil {
		return err
	}
	set, err := toolchain.LoadSet(ctx, b.Repo.Root, toolchain.Main)
	if err != nil {
		return err
	}
	// The builder gets its own root, so that it leaves bin/ alone.
	builder := toolchain.Builder{Root: filepath.Join(scratch, "root"), Cache: filepath.Join(scratch, "cache"), Platform: toolchain.Host(), Out: b.Out}
	_, err = builder.Ensure(ctx, set)
	return err
}

// Clusters measures clusters of the embedded provider, prints a table, and removes the clusters.
func (b Bench) Clusters(ctx context.Context) error {
	var clusters []classroom.Cluster
	for i := range crowd {
		cluster, err := classroom.New(classroom.Options{
			Repo: b.Repo, Provider: providers.Embedded, Name: fmt.Sprintf("bench-%d", i+1), Nodes: 3, Out: b.Log,
		})
		if err != nil {
			return err
		}
		clusters = append(clusters, cluster)
	}
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		for _, cluster := range clusters {
			_ = cluster.Down(cleanup)
		}
	}()
	fmt.Fprintf(b.Out, "| figure | median of %d | range |\n|---|---|---|\n", b.Runs)
	if err := b.durations(ctx, clusters[0]); err != nil {
		return err
	}
	return b.costs(ctx, clusters)
}

func (b Bench) durations(ctx context.Context, cluster classroom.Cluster) error {
	steps := []struct {
		figure string
		do     func(context.Context) error
	}{
		{figure: "`make up`, tools built, no cluster", do: cluster.Up},
		{figure: "`make up`, cluster running", do: cluster.Up},
		{figure: "`make reset`", do: cluster.Reset},
		{figure: "`make down`", do: cluster.Down},
	}
	took := make([][]time.Duration, len(steps))
	for range b.Runs {
		for i, step := range steps {
			began := time.Now()
			if err := step.do(ctx); err != nil {
				return fmt.Errorf("%s: %w", step.figure, err)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	for i, step := range steps {
		b.row(step.figure, took[i])
	}
	return nil
}

func (b Bench) row(figure string, took []time.Duration) {
	slices.Sort(took)
	fmt.Fprintf(b.Out, "| %s | %.2f s | %.2f–%.2f s |\n", figure, took[len(took)/2].Seconds(), took[0].Seconds(), took[len(took)-1].Seconds())
}

// costs measures the memory and the idle load of one cluster, and of several at the same time. On Linux, it adds up the
// components' shares of memory, not their sizes: clusters share the pages of their programs, and a sum of the sizes
// would count those pages several times. Other programs on the machine hardly affect the result.
func (b Bench) costs(ctx context.Context, clusters []classroom.Cluster) error {
	var first uint64
	for i, cluster := range clusters {
		if err := cluster.Up(ctx); err != nil {
			return err
		}
		if i != 0 && i != len(clusters)-1 {
			continue
		}
		if err := wait(ctx, settle); err != nil {
			return err
		}
		used, err := usedMemory(ctx, clusters[:i+1])
		if err != nil {
			return err
		}
		load, err := idleLoad(ctx, clusters[:i+1])
		if err != nil {
			return err
		}
		if i == 0 {
			first = used
			fmt.Fprintf(b.Out, "| memory of one cluster | %d MB | |\n| idle load of one cluster | %.1f %% of a core | |\n", used/1e6, load)
			continue
		}
		fmt.Fprintf(b.Out, "| memory of each further cluster, %d side by side | %d MB | |\n", i+1, (used-first)/uint64(i)/1e6)
		fmt.Fprintf(b.Out, "| idle load of %d clusters | %.1f %% of a core | |\n", i+1, load)
	}
	return nil
}

func usedMemory(ctx context.Context, clusters []classroom.Cluster) (uint64, error) {
	return sum(ctx, clusters, memory)
}

// idleLoad returns the CPU time that all components of the clusters use while idle, as a percentage of one core.
func idleLoad(ctx context.Context, clusters []classroom.Cluster) (float64, error) {
	before, err := processorSeconds(ctx, clusters)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := wait(ctx, idle); err != nil {
		return 0, err
	}
	after, err := processorSeconds(ctx, clusters)
	return 100 * (after - before) / time.Since(began).Seconds(), err
}

func processorSeconds(ctx context.Context, clusters []classroom.Cluster) (float64, error) {
	return sum(ctx, clusters, func(component classroom.Component) (float64, error) { return component.CPUSeconds, nil })
}

// sum adds up a figure over all the clusters' components.
func sum[N uint64 | float64](ctx context.Context, clusters []classroom.Cluster, of func(classroom.Component) (N, error)) (N, error) {
	var total N
	for _, cluster := range clusters {
		status, err := cluster.Status(ctx)
		if err != nil {
			return 0, err
		}
		for _, component := range status.Components {
			each, err := of(component)
			if err != nil {
				return 0, err
			}
			total += each
		}
	}
	return total, nil
}

func wait(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Tests measures the test suite of each stage that has a module, and prints a row for each.
func (b Bench) Tests(ctx context.Context) error {
	stages, err := b.Repo.Stages()
	if err != nil {
		return err
	}
	for _, stage := range stages {
		if stage.Dir == "" {
			continue
		}
		var took []time.Duration
		// The first run compiles and does not count.
		for run := range b.Runs + 1 {
			command := exec.CommandContext(ctx, "make", fmt.Sprintf("stage-%d", stage.Number), "test")
			command.Dir = b.Repo.Root
			command.Stdout, command.Stderr = b.Log, b.Log
			began := time.Now()
			if err := command.Run(); err != nil {
				return fmt.Errorf("make stage-%d test: %w", stage.Number, err)
			}
			if run > 0 {
				took = append(took, time.Since(began))
			}
		}
		b.row(fmt.Sprintf("`make stage-%d test`, compiled", stage.Number), took)
	}
	return nil
}

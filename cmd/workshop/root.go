package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/leftover"
	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/repo"
	"example.com/operator-workshop/internal/toolchain"
)

// app holds what the commands share, such as the flags that choose a cluster.
type app struct {
	repo     repo.Repo
	provider string
	name     string
	port     int
	nodes    int
	// program is the path of this program, which also serves as watchdog and keeper. If it is empty, as in tests, the
	// control plane of the exercises' checks ends with the check that started it.
	program string
	// yes skips the question that is otherwise asked before the learner's own cluster is changed.
	yes bool
	// confirm asks that question; commands that don't change such a cluster leave it nil.
	confirm func(ctx context.Context, question string) error
}

func newRootCommand() *cobra.Command {
	a := &app{}
	root := &cobra.Command{
		Use:   "workshop",
		Short: "Build the tools, run the classroom cluster, play the chapters, check the exercises",
		Long: "workshop is the command behind the Makefile: `make up` is `bin/workshop up`.\n" +
			"Many flags can also be given to make: `make up CLUSTER=kind NAME=demo`.",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			found, err := repo.Find(".")
			if err != nil {
				return err
			}
			a.repo = found
			if a.program, err = os.Executable(); err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			// Report an error and continue, because most commands work anyway.
			if err := leftover.Sweep(cmd.Context(), found.State()); err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "workshop: %v\n", err)
			}
			return nil
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return plainFlagError(err) })
	flags := root.PersistentFlags()
	flags.StringVar(&a.provider, "cluster", fromEnvironment("WORKSHOP_CLUSTER", providers.Embedded), "provider of the cluster: embedded, kind or current")
	flags.StringVar(&a.name, "name", fromEnvironment("WORKSHOP_NAME", classroom.DefaultName), "name of the cluster")
	flags.BoolVar(&a.yes, "yes", os.Getenv("WORKSHOP_YES") != "", "don't ask before a cluster that the workshop did not make is changed")
	root.AddCommand(
		a.toolsCommand(), a.doctorCommand(), a.benchCommand(),
		a.upCommand(), a.downCommand(), a.statusCommand(), a.resetCommand(),
		a.shellCommand(), a.envCommand(), a.loadCommand(), a.rolloutCommand(),
		a.playCommand(), a.commandsCommand(), a.tourCommand(), a.stageCommand(), a.e2eCommand(), a.snippetsCommand(), a.pagesCommand(),
		a.progressCommand(), a.verifyExercisesCommand(), a.confirmCommand(), a.watchdogCommand(), a.keeperCommand(),
	)
	return root
}

// plainFlagError replaces the error about an invalid number, because that error names a Go function. It returns all
// other errors as they are.
func plainFlagError(err error) error {
	invalid, found := errors.AsType[*pflag.InvalidValueError](err)
	if !found || invalid.GetFlag().Value.Type() != "int" {
		return err
	}
	return fmt.Errorf("--%s takes a number, not %q", invalid.GetFlag().Name, invalid.GetValue())
}

// fromEnvironment returns the value of an environment variable, or the fallback if the variable is empty. The Makefile and
// `make shell` set WORKSHOP_CLUSTER and WORKSHOP_NAME, which choose the cluster.
func fromEnvironment(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

// isTerminal reports whether out is a terminal that can redraw lines: one with TERM=dumb can't.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}

// ensureTools builds those tools of a set that are missing or out of date in bin/, and downloads the modules that the
// stages need.
func (a *app) ensureTools(ctx context.Context, out io.Writer, setName string) error {
	builder, err := a.builder(out, toolchain.Host())
	if err != nil {
		return err
	}
	set, err := toolchain.LoadSet(ctx, a.repo.Root, setName)
	if err != nil {
		return err
	}
	if _, err := builder.Ensure(ctx, set); err != nil {
		return err
	}
	// The tools are there. If a module can't be downloaded, only the commands that need it fail.
	if err := builder.Prefetch(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintf(out, "Continuing, although some modules are missing: %v\n", err)
	}
	return ctx.Err()
}

func (a *app) builder(out io.Writer, platform toolchain.Platform) (toolchain.Builder, error) {
	cache, err := repo.CacheDir()
	if err != nil {
		return toolchain.Builder{}, err
	}
	return toolchain.Builder{Root: a.repo.Root, Cache: cache, Platform: platform, Out: out, Terminal: isTerminal(out)}, nil
}

// cluster returns the cluster that the flags choose, which may not exist yet.
func (a *app) cluster(out io.Writer) (classroom.Cluster, error) {
	nodes := a.nodes
	if nodes == 0 {
		nodes = defaultNodes(a.provider)
	}
	return classroom.New(classroom.Options{
		Repo: a.repo, Provider: a.provider, Name: a.name, Port: a.port, Nodes: nodes, Out: out, Confirm: a.confirm,
	})
}

// makeCommand returns the make command for a goal on the cluster that the flags choose, for use in messages.
func (a *app) makeCommand(goal string) string {
	return classroom.Options{Provider: a.provider, Name: a.name}.MakeCommand(goal)
}

// defaultNodes returns 3 for simulated nodes, which cost little, and 1 for kind, whose nodes are containers.
func defaultNodes(provider string) int {
	if provider == providers.Kind {
		return 1
	}
	return 3
}

// upToInstall brings up the cluster for a command that may then change it. If the cluster is the learner's own,
// upToInstall asks first.
func (a *app) upToInstall(cmd *cobra.Command) (classroom.Cluster, error) {
	a.confirm = a.ask(cmd.InOrStdin(), cmd.OutOrStdout())
	cluster, err := a.cluster(cmd.OutOrStdout())
	if err != nil {
		return nil, err
	}
	return cluster, a.upAndChoose(cmd.Context(), cmd.OutOrStdout(), cluster)
}

// upAndChoose brings up a cluster, and then points .workshop/kubeconfig at it where classroom.Cluster's Choose permits.
func (a *app) upAndChoose(ctx context.Context, out io.Writer, cluster classroom.Cluster) error {
	if err := a.up(ctx, out, cluster); err != nil {
		return err
	}
	return cluster.Choose(ctx)
}

// up builds missing tools, and then brings up the cluster.
func (a *app) up(ctx context.Context, out io.Writer, cluster classroom.Cluster) error {
	if err := a.ensureTools(ctx, out, toolchain.Main); err != nil {
		return err
	}
	return cluster.Up(ctx)
}

// environment returns this program's environment and the variables that chosen returns.
func (a *app) environment(cluster classroom.Cluster) []string {
	return append(os.Environ(), a.chosen(cluster)...)
}

// goSettings returns the settings for everything that is compiled, as in the stages' Makefiles: with two different cgo
// settings, many packages would be compiled twice. Learners can switch cgo on, for example for `go test -race`.
func goSettings() []string { return []string{"CGO_ENABLED=" + fromEnvironment("CGO_ENABLED", "0")} }

// chosen returns the settings for go, and the variables that make programs use the cluster and bin/.
func (a *app) chosen(cluster classroom.Cluster) []string {
	chosen := append(cluster.Environment(), goSettings()...)
	chosen = append(chosen, "WORKSHOP_CLUSTER="+a.provider, "WORKSHOP_NAME="+a.name)
	if a.provider == providers.Current && a.confirm != nil {
		// Ask the learner only once, not again for each command of a chapter or a Makefile.
		chosen = append(chosen, "WORKSHOP_YES=1")
	}
	return chosen
}

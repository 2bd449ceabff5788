package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/bench"
	"example.com/operator-workshop/internal/toolchain"
)

func (a *app) benchCommand() *cobra.Command {
	var build, loadOnly bool
	var runs int
	var load bench.LoadOptions
	command := &cobra.Command{
		Use:   "bench",
		Short: "Measure the figures of docs/benchmarks.md",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			measure := bench.Bench{Repo: a.repo, Runs: runs, Out: cmd.OutOrStdout(), Log: cmd.ErrOrStderr()}
			if build && loadOnly {
				return errors.New("--build and --load measure different things: choose one")
			}
			if err := measure.CheckLoad(load); err != nil {
				return err
			}
			if err := a.ensureTools(cmd.Context(), cmd.ErrOrStderr(), toolchain.Main); err != nil {
				return err
			}
			if build {
				return measure.Build(cmd.Context())
			}
			if loadOnly {
				return measure.Loads(cmd.Context(), load)
			}
			if err := measure.Clusters(cmd.Context()); err != nil {
				return err
			}
			if err := measure.Tests(cmd.Context()); err != nil {
				return err
			}
			return measure.Loads(cmd.Context(), load)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&build, "build", false, "measure only a cold build of the tools that `make tools` builds")
	flags.IntVar(&runs, "runs", 5, "how many times to measure each duration")
	flags.BoolVar(&loadOnly, "load", false, "measure only the controllers of the stages under load")
	flags.StringVar(&load.Stage, "stage", "", "the only stage to measure under load (default: all that have config/bench/load.yaml)")
	flags.StringVar(&load.Resources, "resources", "100,500,1000", "numbers of resources to create, separated by commas")
	flags.DurationVar(&load.Idle, "idle", time.Minute, "how long to measure an idle controller")
	return command
}

package main

import (
	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/bench"
	"example.com/operator-workshop/internal/toolchain"
)

func (a *app) benchCommand() *cobra.Command {
	var build bool
	var runs int
	command := &cobra.Command{
		Use:   "bench",
		Short: "Measure the figures of docs/benchmarks.md",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.ensureTools(cmd.Context(), cmd.ErrOrStderr(), toolchain.Main); err != nil {
				return err
			}
			measure := bench.Bench{Repo: a.repo, Runs: runs, Out: cmd.OutOrStdout(), Log: cmd.ErrOrStderr()}
			if build {
				return measure.Build(cmd.Context())
			}
			if err := measure.Clusters(cmd.Context()); err != nil {
				return err
			}
			return measure.Tests(cmd.Context())
		},
	}
	command.Flags().BoolVar(&build, "build", false, "measure a cold build of every tool instead")
	command.Flags().IntVar(&runs, "runs", 5, "how often each duration is measured")
	return command
}

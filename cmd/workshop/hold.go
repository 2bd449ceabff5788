package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/e2e"
	"example.com/operator-workshop/internal/keeper"
	"example.com/operator-workshop/internal/leftover"
)

// hold reserves the cluster for a play: a second play would delete what the first one makes.
func (a *app) hold(ctx context.Context, cluster classroom.Cluster) (*leftover.Play, error) {
	key := strings.TrimSuffix(filepath.Base(cluster.Kubeconfig()), ".kubeconfig")
	return leftover.Begin(ctx, a.repo.State(), key, a.program, watchdogName)
}

// chapterEnvironment returns the environment of a chapter's commands. It leaves out settings of the learner's shell
// that would change what a chapter does, such as GOFLAGS and MAKEFLAGS.
func (a *app) chapterEnvironment(cluster classroom.Cluster, held *leftover.Play) []string {
	return e2e.Environment(append(a.chosen(cluster), held.Environment())...)
}

const watchdogName = "watchdog"

// watchdogCommand waits until the player is gone, and then stops the programs that its play started (see package
// leftover).
func (a *app) watchdogCommand() *cobra.Command {
	return &cobra.Command{
		Use:    watchdogName + " MARK",
		Short:  "Wait until standard input ends, then end the programs of the play with this mark",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return leftover.Watch(context.WithoutCancel(cmd.Context()), cmd.InOrStdin(), args[0])
		},
	}
}

const keeperName = "keeper"

// keeperCommand keeps the control plane of the exercises' checks for the next check (see package keeper).
func (a *app) keeperCommand() *cobra.Command {
	return &cobra.Command{
		Use:    keeperName,
		Short:  "Keep a control plane until no check has used it for a while",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return keeper.Run(cmd.Context(), a.repo.State(), keeper.Idle, cmd.OutOrStdout())
		},
	}
}

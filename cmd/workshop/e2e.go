package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/chapter"
	"example.com/operator-workshop/internal/chapter/play"
	"example.com/operator-workshop/internal/e2e"
	"example.com/operator-workshop/internal/leftover"
	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/repo"
)

func (a *app) e2eCommand() *cobra.Command {
	var options e2e.Options
	var nodes int
	command := &cobra.Command{
		Use:   "e2e STAGE",
		Short: "Test a stage's operator end to end in a kind cluster made for the test",
		Long: "e2e makes a kind cluster named e2e-STAGE, loads the image of the stage's operator there (--build builds it first),\n" +
			"runs the specs in test/e2e, plays the chapter, and removes the cluster, even after a failure, unless you add --keep.\n" +
			"With --cluster=current, it uses the cluster of your kubeconfig, whose nodes must be able to pull the image.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			stage, err := a.repo.Stage(args[0])
			if err != nil {
				return err
			}
			if err := options.Check(stage, a.provider); err != nil {
				return err
			}
			if a.provider != providers.Current {
				a.provider, a.name = providers.Kind, fmt.Sprintf("e2e-%d", stage.Number)
			}
			a.nodes = nodes
			return a.endToEnd(cmd, stage, options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Image, "image", "", "image of the operator")
	flags.BoolVar(&options.Build, "build", false, "first build the image, with the stage's `make docker-build`")
	flags.StringArrayVar(&options.With, "with", nil, "image of another pod in the test, loaded if docker has it (repeatable)")
	flags.IntVar(&nodes, "nodes", 3, "number of nodes; the specs drain one if there are at least two besides the control plane's")
	flags.StringVar(&options.Labels, "labels", "", "label filter for the specs")
	flags.StringVar(&options.Only, "only", "", "specs or chapter: run only that part")
	flags.BoolVar(&options.Keep, "keep", false, "keep the cluster after the test")
	return command
}

func (a *app) endToEnd(cmd *cobra.Command, stage repo.Stage, options e2e.Options) error {
	out := cmd.OutOrStdout()
	loaded, err := chapter.Load(a.relative(stage.Chapter))
	if err != nil {
		return err
	}
	a.confirm = a.ask(cmd.InOrStdin(), out)
	cluster, err := a.cluster(out)
	if err != nil {
		return err
	}
	test := &e2e.StageTest{
		Options: options, Repo: a.repo, Stage: stage, Provider: a.provider, Cluster: cluster,
		Make: fromEnvironment("MAKE", "make"), Out: out, Relative: a.relative,
		Up: func(ctx context.Context) (*leftover.Play, error) {
			if err := a.up(ctx, out, cluster); err != nil {
				return nil, err
			}
			return a.hold(ctx, cluster)
		},
		Variables: func() []string { return a.chosen(cluster) },
		RequireFree: func(ctx context.Context, environment []string) error {
			return a.requireFree(ctx, environment, loaded)
		},
		Play: func(ctx context.Context, environment []string) error {
			player := &play.Player{Dir: a.repo.Root, Env: environment, Out: out, Cluster: a.provider, Quiet: true}
			return player.Play(ctx, loaded)
		},
	}
	return test.Run(cmd.Context())
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/chapter"
	"example.com/operator-workshop/internal/chapter/play"
	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/e2e"
	"example.com/operator-workshop/internal/leftover"
	"example.com/operator-workshop/internal/repo"
	"example.com/operator-workshop/operatortest/outside/logs"
)

const (
	// specsLimit bounds the specs of a stage; they take a few minutes.
	specsLimit = 30 * time.Minute
	// ownGrace and currentGrace are how long the specs may clean up after Ctrl-C: a cluster of their own goes anyway.
	ownGrace     = 10 * time.Second
	currentGrace = 5 * time.Minute
)

// e2eOptions are the flags of `workshop e2e`.
type e2eOptions struct {
	image  string
	build  bool
	with   []string
	labels string
	only   string
	keep   bool
	nodes  int
}

// endToEnd is an end-to-end test of a stage in a cluster.
type endToEnd struct {
	*app
	e2eOptions
	cmd     *cobra.Command
	stage   repo.Stage
	cluster classroom.Cluster
	held    *leftover.Play // from the creation of the cluster on
}

func (a *app) e2eCommand() *cobra.Command {
	options := e2eOptions{}
	command := &cobra.Command{
		Use:   "e2e STAGE",
		Short: "Try a stage's operator from end to end in a kind cluster made for that",
		Long: "e2e makes a kind cluster named e2e-STAGE, builds the image of the stage's operator and loads it there,\n" +
			"runs the specs in test/e2e, plays the chapter, and removes the cluster, whatever comes.\n" +
			"With --cluster=current it takes the cluster of your kubeconfig, which has to be able to pull the image.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			stage, err := a.repo.Stage(args[0])
			if err != nil {
				return err
			}
			return a.endToEnd(cmd, stage, options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.image, "image", "", "image of the operator")
	flags.BoolVar(&options.build, "build", false, "build the image before, with the stage's `make docker-build`")
	flags.StringArrayVar(&options.with, "with", nil, "image that the operator's pods need, loaded if docker has it (repeatable)")
	flags.IntVar(&options.nodes, "nodes", 3, "number of nodes; to drain one, two must be left besides the control plane's")
	flags.StringVar(&options.labels, "labels", "", "label filter for the specs")
	flags.StringVar(&options.only, "only", "", "specs or chapter: leave the other out")
	flags.BoolVar(&options.keep, "keep", false, "leave the cluster as it is in the end")
	return command
}

func (a *app) endToEnd(cmd *cobra.Command, stage repo.Stage, options e2eOptions) error {
	if !isDir(filepath.Join(stage.Dir, "test", "e2e")) {
		return fmt.Errorf("stage %d has no end-to-end tests: the stages from 2 on have them", stage.Number)
	}
	if options.image == "" {
		return errors.New("--image is missing: `make test-e2e` in the stage's folder says it")
	}
	if options.only != "" && options.only != "specs" && options.only != "chapter" {
		return fmt.Errorf("--only=%s: choose specs or chapter", options.only)
	}
	if a.provider == classroom.Current && options.build {
		return errors.New("CLUSTER=current: choose an image that the cluster can pull, with IMG=…, such as one that `make docker-build docker-push IMG=…` has put into a registry")
	}
	if a.provider != classroom.Current {
		a.provider, a.name = classroom.Kind, "e2e-"+strconv.Itoa(stage.Number)
	}
	a.nodes = options.nodes
	cluster, err := a.cluster(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	// Before anything is built: is there a container engine?
	if _, err := cluster.Status(cmd.Context()); err != nil {
		return err
	}
	t := &endToEnd{app: a, e2eOptions: options, cmd: cmd, stage: stage, cluster: cluster}
	if err := os.RemoveAll(t.logs()); err != nil {
		return fmt.Errorf("remove the logs of the last time: %w", err)
	}
	err = t.test().Run(cmd.Context())
	if t.held != nil {
		err = errors.Join(err, t.held.End(cmd.Context()))
	}
	return err
}

func (t *endToEnd) test() e2e.Test {
	test := e2e.Test{Logs: t.collect, Down: t.down, Out: t.cmd.OutOrStdout()}
	if t.build {
		test.Begin = append(test.Begin, e2e.Step{Name: "the build of the image", Do: t.buildImage})
	}
	test.Begin = append(test.Begin, e2e.Step{Name: "the creation of the cluster", Do: t.bringUp})
	if t.provider == classroom.Kind {
		test.Steps = append(test.Steps, e2e.Step{Name: "the loading of the images", Do: t.load})
	}
	if t.only != "chapter" {
		test.Steps = append(test.Steps, e2e.Step{Name: "the specs", Do: t.specs})
	}
	if t.only != "specs" {
		test.Steps = append(test.Steps, e2e.Step{Name: "the chapter", Do: t.chapter})
	}
	return test
}

func (t *endToEnd) buildImage(ctx context.Context) error {
	return t.command([]string{fromEnvironment("MAKE", "make"), "docker-build", "IMG=" + t.image}).Run(ctx)
}

// bringUp also makes sure that the test deletes nothing that the learner's own cluster had before.
func (t *endToEnd) bringUp(ctx context.Context) error {
	t.aside = true
	cluster, err := t.upToInstall(t.cmd)
	if err != nil {
		return err
	}
	t.cluster = cluster
	if t.held, err = t.hold(ctx, cluster); err != nil || t.provider != classroom.Current {
		return err
	}
	loaded, err := chapter.Load(t.relative(t.stage.Chapter))
	if err != nil {
		return err
	}
	return t.requireFree(ctx, t.environment(), loaded)
}

// load copies the operator's image into the nodes, and those of other pods that docker has. Nodes pull the rest.
func (t *endToEnd) load(ctx context.Context) error {
	images := []string{t.image}
	for _, image := range t.with {
		if exec.CommandContext(ctx, "docker", "image", "inspect", image).Run() == nil {
			images = append(images, image)
		}
	}
	loader, ok := t.cluster.(classroom.ImageLoader)
	if !ok {
		return errors.New("the nodes of this cluster take no images")
	}
	return loader.Load(ctx, images...)
}

func (t *endToEnd) specs(ctx context.Context) error {
	args := []string{"go", "test", "-count=1", "-tags=e2e", "-timeout=" + specsLimit.String(), "./test/e2e", "-v", "-ginkgo.v"}
	if t.labels != "" {
		args = append(args, "-ginkgo.label-filter="+t.labels)
	}
	command := t.command(args)
	command.Env = append(command.Env, "IMG="+t.image) // the chapter names its own images
	return command.Run(ctx)
}

func (t *endToEnd) chapter(ctx context.Context) error {
	loaded, err := chapter.Load(t.relative(t.stage.Chapter))
	if err != nil {
		return err
	}
	player := &play.Player{Dir: t.repo.Root, Env: t.environment(), Out: t.cmd.OutOrStdout(), Cluster: t.provider, Quiet: true}
	return player.Play(ctx, loaded)
}

func (t *endToEnd) command(args []string) e2e.Command {
	grace := ownGrace
	if t.provider == classroom.Current {
		grace = currentGrace
	}
	return e2e.Command{Dir: t.stage.Dir, Env: t.environment(), Args: args, Grace: grace, Out: t.cmd.OutOrStdout()}
}

func (t *endToEnd) environment() []string {
	chosen := append(t.chosen(t.cluster), "WORKSHOP_YES=1", "E2E_LOGS="+filepath.Join(t.logs(), "specs"))
	if t.keep {
		chosen = append(chosen, "KEEP=1")
	}
	if t.held != nil {
		chosen = append(chosen, t.held.Environment())
	}
	return e2e.Environment(chosen...)
}

// logs is the folder for what is known of a failure. The specs write theirs while the operator is still there.
func (t *endToEnd) logs() string { return filepath.Join(t.stage.Dir, "bin", "e2e-logs") }

// collect never hides the failure that it is called for: what could not be had is said, and no error.
func (t *endToEnd) collect(ctx context.Context) error {
	out := t.cmd.OutOrStdout()
	err := logs.Collect(ctx, filepath.Join(t.repo.Bin(), "kubectl"), t.environment(), filepath.Join(t.logs(), "cluster"))
	if t.provider == classroom.Kind {
		status, statusErr := t.cluster.Status(ctx)
		export := exec.CommandContext(ctx, filepath.Join(t.repo.Bin(), "kind"), "export", "logs", filepath.Join(t.logs(), "kind"), "--name", status.Name)
		exported := export.Run()
		if exported != nil {
			exported = fmt.Errorf("kind export logs: %w", exported)
		}
		err = errors.Join(err, statusErr, exported)
	}
	if err != nil {
		fmt.Fprintf(out, "Not all logs could be collected: %v\n", err)
	}
	fmt.Fprintf(out, "What the cluster says about it is in %s.\n", t.relative(t.logs()))
	return nil
}

func (t *endToEnd) down(ctx context.Context) error {
	if t.provider == classroom.Current {
		return nil
	}
	if !t.keep {
		return t.cluster.Down(ctx)
	}
	fmt.Fprintf(t.cmd.OutOrStdout(), "The cluster stays: export KUBECONFIG=%s; `make stage-%d cleanup-test-e2e` removes it.\n", t.cluster.Kubeconfig(), t.stage.Number)
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

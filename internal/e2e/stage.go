package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/leftover"
	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/quote"
	"example.com/operator-workshop/internal/repo"
	"example.com/operator-workshop/operatortest/incluster/logs"
)

const (
	// specsLimit bounds the specs of a stage, which take a few minutes.
	specsLimit = 30 * time.Minute
	// ownGrace and currentGrace are how long the specs may take to clean up after Ctrl-C: ownGrace in a cluster made
	// for the test, which is removed anyway unless Keep is true, and currentGrace in the learner's own.
	ownGrace     = 10 * time.Second
	currentGrace = 5 * time.Minute
)

// Options say what to test, and with which images.
type Options struct {
	// Image is the operator's image. If Build is true, the stage's `make docker-build` builds it first.
	Image string
	Build bool
	// With lists the images of the pods in the test, except the operator's. Those that docker has are loaded into a
	// kind cluster's nodes.
	With []string
	// Labels filters the specs.
	Labels string
	// Only is "specs" or "chapter". If it is empty, both are run.
	Only string
	// If Keep is true, the cluster is not removed, and after a failure, what the specs have made stays in it.
	Keep bool
}

// Check returns an error if the options are invalid, or don't fit the stage or the provider. The error says what to
// change.
func (o Options) Check(stage repo.Stage, provider string) error {
	if info, err := os.Stat(filepath.Join(stage.Dir, "test", "e2e")); stage.Dir == "" || err != nil || !info.IsDir() {
		return fmt.Errorf("stage %d has no end-to-end tests: stages 2 to 6 have them", stage.Number)
	}
	if o.Image == "" {
		return errors.New("--image is missing: `make test-e2e` in the stage's folder passes it")
	}
	if o.Only != "" && o.Only != "specs" && o.Only != "chapter" {
		return fmt.Errorf("--only=%s: choose specs or chapter", o.Only)
	}
	if provider == providers.Current && o.Build {
		return errors.New("CLUSTER=current: choose an image that the cluster can pull, with IMG=…, such as one that `make docker-build docker-push IMG=…` has pushed to a registry")
	}
	return nil
}

// StageTest tests a stage's operator in a cluster.
type StageTest struct {
	Options
	Repo     repo.Repo
	Stage    repo.Stage
	Provider string
	Cluster  classroom.Cluster
	// Make is the name of the make command.
	Make string
	Out  io.Writer
	// Relative returns a path relative to the current folder, for messages.
	Relative func(path string) string

	// Up brings the cluster up and reserves it.
	Up func(ctx context.Context) (*leftover.Play, error)
	// Variables returns settings for go, and environment variables that make programs use the cluster and bin/.
	Variables func() []string
	// RequireFree fails if the cluster has something that the stage's chapter makes and deletes.
	RequireFree func(ctx context.Context, environment []string) error
	// Play plays the stage's chapter.
	Play func(ctx context.Context, environment []string) error

	// held is the cluster's reservation, or nil before the cluster is up.
	held *leftover.Play
}

// Run tests the operator. Once the cluster is ready for the test, Run removes it at the end, even after a failure,
// unless it is the learner's own or Keep is true.
func (t *StageTest) Run(ctx context.Context) error {
	// A kind cluster needs a container engine. If there is none, Status fails here, before anything is built.
	if _, err := t.Cluster.Status(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(t.logs()); err != nil {
		return fmt.Errorf("remove the logs of the previous run: %w", err)
	}
	err := t.test().Run(ctx)
	if t.held != nil {
		err = errors.Join(err, t.held.End(ctx))
	}
	return err
}

func (t *StageTest) test() Test {
	test := Test{Logs: t.collect, Down: t.down, Out: t.Out}
	if t.Build {
		test.Begin = append(test.Begin, Step{Name: "the build of the image", Do: t.buildImage})
	}
	test.Begin = append(test.Begin, Step{Name: "the creation of the cluster", Do: t.bringUp})
	if t.Provider == providers.Kind {
		test.Steps = append(test.Steps, Step{Name: "the loading of the images", Do: t.load})
	}
	if t.Only != "chapter" {
		test.Steps = append(test.Steps, Step{Name: "the specs", Do: t.specs})
	}
	if t.Only != "specs" {
		test.Steps = append(test.Steps, Step{Name: "the chapter", Do: t.chapter})
	}
	return test
}

func (t *StageTest) buildImage(ctx context.Context) error {
	return t.command(t.Make, "docker-build", "IMG="+t.Image).Run(ctx)
}

// bringUp brings the cluster up. If the cluster is the learner's own and contains something that the chapter would
// delete, bringUp fails. The specs themselves check for objects that they would delete.
func (t *StageTest) bringUp(ctx context.Context) (err error) {
	if t.held, err = t.Up(ctx); err != nil || t.Provider != providers.Current {
		return err
	}
	return t.RequireFree(ctx, t.environment())
}

// load copies the operator's image into the nodes, and those images in With that docker has. The nodes pull the rest.
func (t *StageTest) load(ctx context.Context) error {
	images := []string{t.Image}
	for _, image := range t.With {
		if exec.CommandContext(ctx, "docker", "image", "inspect", image).Run() == nil {
			images = append(images, image)
		}
	}
	loader, ok := t.Cluster.(classroom.ImageLoader)
	if !ok {
		return errors.New("images can't be loaded into the nodes of this cluster")
	}
	return loader.Load(ctx, images...)
}

func (t *StageTest) specs(ctx context.Context) error {
	args := []string{"test", "-count=1", "-tags=e2e", "-timeout=" + specsLimit.String(), "./test/e2e", "-v", "-ginkgo.v"}
	if t.Labels != "" {
		args = append(args, "-ginkgo.label-filter="+t.Labels)
	}
	command := t.command("go", args...)
	command.Env = append(command.Env, "IMG="+t.Image) // the chapter names its own images
	return command.Run(ctx)
}

func (t *StageTest) chapter(ctx context.Context) error { return t.Play(ctx, t.environment()) }

func (t *StageTest) command(program string, args ...string) Command {
	grace := ownGrace
	if t.Provider == providers.Current {
		grace = currentGrace
	}
	return Command{Dir: t.Stage.Dir, Env: t.environment(), Args: append([]string{program}, args...), Grace: grace, Out: t.Out}
}

func (t *StageTest) environment() []string {
	variables := append(t.Variables(), "WORKSHOP_YES=1", "E2E_LOGS="+filepath.Join(t.logs(), "specs"))
	if t.Keep {
		variables = append(variables, "KEEP=1")
	}
	if t.held != nil {
		variables = append(variables, t.held.Environment())
	}
	return Environment(variables...)
}

// logs returns the folder for information about a failure. The specs write their part while the operator is still
// running.
func (t *StageTest) logs() string { return filepath.Join(t.Stage.Dir, "bin", "e2e-logs") }

// collect collects logs. It prints its errors and returns nil, because they say nothing about the operator.
func (t *StageTest) collect(ctx context.Context) error {
	err := logs.Collect(ctx, filepath.Join(t.Repo.Bin(), "kubectl"), t.environment(), filepath.Join(t.logs(), "cluster"))
	if t.Provider == providers.Kind {
		status, statusErr := t.Cluster.Status(ctx)
		export := exec.CommandContext(ctx, filepath.Join(t.Repo.Bin(), "kind"), "export", "logs", filepath.Join(t.logs(), "kind"), "--name", status.Name)
		exported := export.Run()
		if exported != nil {
			exported = fmt.Errorf("kind export logs: %w", exported)
		}
		err = errors.Join(err, statusErr, exported)
	}
	if err != nil {
		fmt.Fprintf(t.Out, "Not all logs could be collected: %v\n", err)
	}
	fmt.Fprintf(t.Out, "Logs and the state of the cluster are in %s.\n", t.Relative(t.logs()))
	return nil
}

func (t *StageTest) down(ctx context.Context) error {
	if t.Provider == providers.Current {
		return nil
	}
	if !t.Keep {
		return t.Cluster.Down(ctx)
	}
	fmt.Fprintf(t.Out, "The cluster keeps running: export KUBECONFIG=%s to use it; `make stage-%d cleanup-test-e2e` removes it.\n", quote.Args([]string{t.Cluster.Kubeconfig()}), t.Stage.Number)
	return nil
}

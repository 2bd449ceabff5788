package classroom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// current is the cluster that the learner's own kubeconfig names. The workshop
// neither makes nor removes it.
type current struct {
	options Options
	runner  runner
}

func newCurrent(options Options) *current {
	state := options.Repo.State()
	return &current{
		options: options,
		runner:  runner{repo: options.Repo, out: options.Out, log: filepath.Join(state, "current.log"), env: []string{"KUBECACHEDIR=" + filepath.Join(state, "kube-cache")}},
	}
}

// Kubeconfig is $KUBECONFIG, or ~/.kube/config as for kubectl.
func (c *current) Kubeconfig() string {
	if path := os.Getenv("KUBECONFIG"); path != "" {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".kube", "config")
}

// Environment is what every shell needs.
func (c *current) Environment() []string { return environment(c.options.Repo, c.Kubeconfig()) }

func (c *current) kubectl(ctx context.Context, args ...string) (string, error) {
	runner := c.runner
	runner.env = append(runner.env, "KUBECONFIG="+c.Kubeconfig())
	return runner.output(ctx, "kubectl", args...)
}

// Up only looks whether the cluster answers.
func (c *current) Up(ctx context.Context) error {
	if err := makeDir(c.options.Repo.State()); err != nil {
		return err
	}
	if err := c.checkKubeconfig(); err != nil {
		return err
	}
	name, err := c.kubectl(ctx, "config", "current-context")
	if err != nil {
		return fmt.Errorf("CLUSTER=current: %s chooses no cluster: run `kubectl config use-context NAME`", c.Kubeconfig())
	}
	version, err := c.kubectl(ctx, "get", "--raw", "/version", "--request-timeout=10s")
	if err != nil || version == "" {
		return fmt.Errorf("CLUSTER=current: the cluster of context %q does not answer: start it, or choose another with `kubectl config use-context NAME` (%w)", strings.TrimSpace(name), err)
	}
	fmt.Fprintf(c.options.Out, "Using your cluster: context %s of %s\n", strings.TrimSpace(name), c.Kubeconfig())
	if c.options.Confirm == nil {
		return nil
	}
	server, err := c.kubectl(ctx, "config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")
	if err != nil {
		return err
	}
	return c.options.Confirm(ctx, fmt.Sprintf("This installs into your own cluster: context %s, server %s.", strings.TrimSpace(name), server))
}

// checkKubeconfig accepts what kubectl accepts: a list of files of which some may be missing.
func (c *current) checkKubeconfig() error {
	for _, path := range filepath.SplitList(c.Kubeconfig()) {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return nil
		}
	}
	return fmt.Errorf("CLUSTER=current: there is no kubeconfig %s: set KUBECONFIG to the file of your cluster, or leave CLUSTER out for the built-in one", c.Kubeconfig())
}

// Down leaves a cluster alone that the workshop did not make.
func (c *current) Down(context.Context) error {
	fmt.Fprintln(c.options.Out, "CLUSTER=current is your own cluster: it is left as it is.")
	return nil
}

// Reset refuses to touch what others may have put into the cluster.
func (c *current) Reset(context.Context) error {
	return errors.New("CLUSTER=current is your own cluster and is never reset: remove what a chapter left with the commands of its last step")
}

// Status reports what the cluster's API server says.
func (c *current) Status(ctx context.Context) (Status, error) {
	status := Status{Name: Current, Provider: Current, Kubeconfig: c.Kubeconfig(), State: StateRunning}
	if err := makeDir(c.options.Repo.State()); err != nil {
		return status, err
	}
	if err := c.checkKubeconfig(); err != nil {
		status.State, status.Detail = StateAbsent, err.Error()
		return status, nil
	}
	describeServer(ctx, &status, c.kubectl)
	return status, nil
}

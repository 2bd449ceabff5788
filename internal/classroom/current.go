package classroom

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/internal/private"
	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/repo"
)

// current is the cluster that the learner's own kubeconfig names. The workshop neither creates nor deletes it.
type current struct {
	options Options
	runner  runner
	// frozen is the path of the kubeconfig's copy, which everything uses after Up. Otherwise a learner who switches the
	// context would send the rest of a chapter to another cluster.
	frozen string
}

func newCurrent(options Options) *current {
	state := options.Repo.State()
	return &current{
		options: options,
		runner:  runner{repo: options.Repo, out: options.Out, log: filepath.Join(state, "current.log"), env: []string{"KUBECACHEDIR=" + filepath.Join(state, "kube-cache")}},
	}
}

// Kubeconfig returns $KUBECONFIG or, if that is empty, ~/.kube/config, as kubectl does. After Up, it returns the path of
// the copy.
func (c *current) Kubeconfig() string {
	if c.frozen != "" {
		return c.frozen
	}
	return c.learners()
}

func (c *current) learners() string {
	if path := os.Getenv("KUBECONFIG"); path != "" {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".kube", "config")
}

// Environment implements Cluster.
func (c *current) Environment() []string { return environment(c.options.Repo, c.Kubeconfig()) }

func (c *current) kubectl(ctx context.Context, args ...string) (string, error) {
	runner := c.runner
	runner.env = append(runner.env, "KUBECONFIG="+c.Kubeconfig())
	return runner.output(ctx, "kubectl", args...)
}

// Up copies the kubeconfig's current context, checks that its cluster responds, and calls Options.Confirm, if set.
func (c *current) Up(ctx context.Context) error {
	if err := private.MakeDir(c.options.Repo.State()); err != nil {
		return err
	}
	if err := c.checkKubeconfig(); err != nil {
		return err
	}
	name, server, err := c.freeze(ctx)
	if err != nil {
		return err
	}
	version, err := c.kubectl(ctx, "get", "--raw", "/version", "--request-timeout=10s")
	if err == nil && version == "" {
		err = errors.New("the answer is empty")
	}
	if err != nil {
		return fmt.Errorf("the cluster of context %q does not answer: start it, or choose another with `kubectl config use-context NAME` (%w)", name, err)
	}
	fmt.Fprintf(c.options.Out, "Using your cluster: context %s of %s\n", name, c.learners())
	if c.options.Confirm == nil {
		return nil
	}
	return c.options.Confirm(ctx, fmt.Sprintf("This changes your own cluster: context %s, server %s.", name, server))
}

// Choose does nothing: .workshop/kubeconfig only points to clusters that the workshop made.
func (c *current) Choose(context.Context) error { return nil }

// freeze copies the current context, with its certificates and keys, into a file whose name includes a hash of the
// content. From then on, Kubeconfig returns the path of this file. freeze returns the name of the context and the URL
// of its API server.
func (c *current) freeze(ctx context.Context) (name, server string, err error) {
	quiet := *c
	quiet.runner.log = "" // the log must not contain credentials
	content, err := quiet.kubectl(ctx, "config", "view", "--minify", "--flatten", "--raw")
	if err != nil {
		return "", "", fmt.Errorf("read the current context of %s: %w; `kubectl config use-context NAME` chooses one", c.learners(), err)
	}
	var config struct {
		Context  string `json:"current-context"`
		Clusters []struct{ Cluster struct{ Server string } }
	}
	if err := yaml.Unmarshal([]byte(content), &config); err != nil || len(config.Clusters) != 1 {
		return "", "", fmt.Errorf("%s chooses no cluster: run `kubectl config use-context NAME`", c.learners())
	}
	hash := sha256.Sum256([]byte(content))
	path := filepath.Join(c.options.Repo.State(), copyPrefix+hex.EncodeToString(hash[:6])+".kubeconfig")
	if existing, err := os.ReadFile(path); err != nil || string(existing) != content {
		if err := private.WriteFile(path, []byte(content)); err != nil {
			return "", "", err
		}
	}
	c.frozen = path
	return config.Context, config.Clusters[0].Cluster.Server, nil
}

// copyPrefix is the prefix of the names of kubeconfig copies.
const copyPrefix = "current-"

// IsClassroom reports whether a kubeconfig belongs to a cluster that the workshop made: a file in .workshop that is not
// a copy of the learner's own.
func IsClassroom(r repo.Repo, kubeconfig string) bool {
	return isKept(r, kubeconfig) && !strings.HasPrefix(filepath.Base(kubeconfig), copyPrefix)
}

// IsCopy reports whether a kubeconfig is a copy of the learner's own.
func IsCopy(r repo.Repo, kubeconfig string) bool {
	return isKept(r, kubeconfig) && strings.HasPrefix(filepath.Base(kubeconfig), copyPrefix)
}

// isKept reports whether the file is in .workshop.
func isKept(r repo.Repo, path string) bool {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	state, stateErr := filepath.EvalSymlinks(r.State())
	return err == nil && stateErr == nil && dir == state
}

// checkKubeconfig returns an error if the learner has no kubeconfig. Like kubectl, it accepts a list of files of which some
// are missing.
func (c *current) checkKubeconfig() error {
	for _, path := range filepath.SplitList(c.learners()) {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return nil
		}
	}
	return fmt.Errorf("there is no kubeconfig %s: set KUBECONFIG to your cluster's file, or leave out KUBECONFIG and CLUSTER=current to use the built-in cluster", c.learners())
}

// Down leaves the learner's own cluster alone, and removes all copies of the learner's kubeconfig.
func (c *current) Down(context.Context) error {
	entries, err := os.ReadDir(c.options.Repo.State())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return private.Explain(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), copyPrefix) && strings.HasSuffix(entry.Name(), ".kubeconfig") {
			if err := os.Remove(filepath.Join(c.options.Repo.State(), entry.Name())); err != nil {
				return private.Explain(err)
			}
		}
	}
	c.frozen = ""
	fmt.Fprintln(c.options.Out, "CLUSTER=current is your own cluster, so it is left as it is.")
	return nil
}

// Reset always fails, because the cluster may contain other people's objects.
func (c *current) Reset(context.Context) error {
	return errors.New("CLUSTER=current is your own cluster and is never reset: use the commands of a chapter's last step to remove what the chapter created")
}

// Status reports the version and the nodes of the cluster. Without a kubeconfig, the state is StateAbsent. If kubectl
// can't read the kubeconfig or get a response, the state is StateBroken.
func (c *current) Status(ctx context.Context) (Status, error) {
	status := Status{Name: providers.Current, Provider: providers.Current, Kubeconfig: c.Kubeconfig(), State: StateRunning}
	if err := private.MakeDir(c.options.Repo.State()); err != nil {
		return status, err
	}
	if err := c.checkKubeconfig(); err != nil {
		status.State, status.Detail = StateAbsent, err.Error()
		return status, nil
	}
	server, err := c.kubectl(ctx, "config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")
	if err != nil {
		status.State, status.Detail = StateBroken, err.Error()
		return status, nil
	}
	// The learner's kubeconfig may name a program for logging in, which only kubectl runs.
	describeServer(ctx, &status, server, func(ctx context.Context, path string) ([]byte, error) {
		out, err := c.kubectl(ctx, "get", "--raw", path)
		return []byte(out), err
	})
	return status, nil
}

package classroom

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// NodeImageVariable names the environment variable that replaces kind's own node image.
const NodeImageVariable = "KIND_NODE_IMAGE"

// kindLimit bounds the creation of a kind cluster, a first pull of its image included.
const kindLimit = 15 * time.Minute

// kind is a cluster with real pods in containers, made by the pinned kind.
type kind struct {
	options Options
	runner  runner
	// cluster is the name as kind knows it. kind's names are shared by the whole
	// machine, so it carries a mark of the checkout.
	cluster string
}

func newKind(options Options) *kind {
	state := options.Repo.State()
	mark := sha256.Sum256([]byte(options.Repo.Root))
	return &kind{
		options: options,
		cluster: options.Name + "-" + hex.EncodeToString(mark[:3]),
		runner: runner{
			repo: options.Repo, out: options.Out,
			log: filepath.Join(state, options.Name+".kind.log"),
			env: []string{"KUBECACHEDIR=" + filepath.Join(state, "kube-cache")},
		},
	}
}

// Kubeconfig is .workshop/NAME.kind.kubeconfig.
func (k *kind) Kubeconfig() string {
	return filepath.Join(k.options.Repo.State(), k.options.Name+".kind.kubeconfig")
}

// Environment is what every shell needs.
func (k *kind) Environment() []string { return environment(k.options.Repo, k.Kubeconfig()) }

// Up creates the cluster, or finds it and writes its kubeconfig anew.
func (k *kind) Up(ctx context.Context) error {
	unlock, exists, err := k.find(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if !exists {
		return k.create(ctx)
	}
	if err := k.runner.run(ctx, "kind", "export", "kubeconfig", "--name", k.cluster, "--kubeconfig", k.Kubeconfig()); err != nil {
		return err
	}
	if _, err := k.kubectl(ctx, "get", "--raw", "/readyz", "--request-timeout=10s"); err != nil {
		return fmt.Errorf("the kind cluster %s does not answer: `make down CLUSTER=kind` removes it, `make up CLUSTER=kind` makes a new one (%w)", k.cluster, err)
	}
	fmt.Fprintf(k.options.Out, "Cluster %s is running.\n", k.cluster)
	return chooseKubeconfig(k.options.Repo.State(), k.Kubeconfig())
}

func (k *kind) create(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, kindLimit)
	defer cancel()
	config := filepath.Join(k.options.Repo.State(), k.options.Name+".kind.yaml")
	nodes := "- role: control-plane\n" + strings.Repeat("- role: worker\n", k.options.Nodes-1)
	content := "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking:\n  apiServerAddress: 127.0.0.1\n"
	if k.options.Port != 0 {
		content += fmt.Sprintf("  apiServerPort: %d\n", k.options.Port)
	}
	if err := writeFile(config, []byte(content+"nodes:\n"+nodes)); err != nil {
		return err
	}
	args := []string{"create", "cluster", "--name", k.cluster, "--config", config, "--kubeconfig", k.Kubeconfig(), "--wait", "3m"}
	if image := os.Getenv(NodeImageVariable); image != "" {
		args = append(args, "--image", image)
	}
	if err := k.runner.run(limited, "kind", args...); err != nil {
		// The context may be over; what was begun is removed all the same.
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = k.runner.run(cleanup, "kind", "delete", "cluster", "--name", k.cluster, "--kubeconfig", k.Kubeconfig())
		return err
	}
	return chooseKubeconfig(k.options.Repo.State(), k.Kubeconfig())
}

// Down removes the cluster's containers and its kubeconfig.
func (k *kind) Down(ctx context.Context) error {
	unlock, exists, err := k.find(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if !exists {
		fmt.Fprintf(k.options.Out, "There is no kind cluster %s.\n", k.cluster)
		return nil
	}
	if err := k.runner.run(ctx, "kind", "delete", "cluster", "--name", k.cluster, "--kubeconfig", k.Kubeconfig()); err != nil {
		return err
	}
	unchoose(k.options.Repo.State(), k.Kubeconfig())
	return os.RemoveAll(k.Kubeconfig())
}

// Reset makes the cluster anew: kind has no snapshots.
func (k *kind) Reset(ctx context.Context) error {
	if err := k.Down(ctx); err != nil {
		return err
	}
	return k.Up(ctx)
}

// Status reports what the cluster's API server says.
func (k *kind) Status(ctx context.Context) (Status, error) {
	status := Status{Name: k.cluster, Provider: Kind, Kubeconfig: k.Kubeconfig(), State: StateRunning}
	unlock, exists, err := k.find(ctx)
	if err != nil {
		return status, err
	}
	defer unlock()
	if !exists {
		status.State, status.Kubeconfig, status.Detail = StateAbsent, "", "`make up CLUSTER=kind` makes it"
		return status, nil
	}
	describeServer(ctx, &status, k.kubectl)
	return status, nil
}

// find locks the cluster and tells whether it exists.
func (k *kind) find(ctx context.Context) (unlock func(), exists bool, err error) {
	unlock, err = lock(ctx, filepath.Join(k.options.Repo.State(), k.options.Name+".kind.lock"))
	if err != nil {
		return nil, false, err
	}
	exists, err = k.exists(ctx)
	if err != nil {
		unlock()
		return nil, false, err
	}
	return unlock, exists, nil
}

// exists asks kind, after making sure that a container engine answers.
func (k *kind) exists(ctx context.Context) (bool, error) {
	if _, err := exec.LookPath("docker"); err != nil {
		return false, errors.New("CLUSTER=kind needs docker, which is not on your PATH: install it, or leave CLUSTER out for the built-in cluster")
	}
	if err := exec.CommandContext(ctx, "docker", "version").Run(); err != nil {
		return false, errors.New("CLUSTER=kind needs a running docker engine, and `docker version` fails: start it, or leave CLUSTER out for the built-in cluster")
	}
	names, err := k.runner.output(ctx, "kind", "get", "clusters")
	if err != nil {
		return false, err
	}
	return slices.Contains(strings.Fields(names), k.cluster), nil
}

func (k *kind) kubectl(ctx context.Context, args ...string) (string, error) {
	return k.runner.output(ctx, "kubectl", append([]string{"--kubeconfig", k.Kubeconfig()}, args...)...)
}

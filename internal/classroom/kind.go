package classroom

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/internal/kube"
	"example.com/operator-workshop/internal/private"
	"example.com/operator-workshop/internal/providers"
)

// NodeImageVariable is the name of the environment variable that chooses a node image other than kind's default.
const NodeImageVariable = "KIND_NODE_IMAGE"

const (
	// kindLimit bounds the creation of a kind cluster, including the first pull of its image.
	kindLimit = 15 * time.Minute
	// kindStartLimit bounds the wait for the API server of a cluster that already exists.
	kindStartLimit = 2 * time.Minute
	// kindRemoveLimit bounds the wait until a cluster's containers are gone, and the removal of an unfinished cluster.
	kindRemoveLimit = 2 * time.Minute
)

// errKindTaken means that someone else created a cluster with this name after this command had found the name free.
var errKindTaken = errors.New("the name is taken")

// kindConfig is the beginning of every kind cluster's configuration.
//
//go:embed kind.yaml
var kindConfig string

// kind is a cluster with real pods in containers, made by the pinned version of kind.
type kind struct {
	options Options
	runner  runner
	// cluster is the cluster's name in kind. All checkouts on a machine share kind's names, so it includes a hash of the
	// checkout's path.
	cluster string
	// image is the nodes' image. If it is empty, kind chooses its default.
	image string
}

func newKind(options Options) *kind {
	state := options.Repo.State()
	mark := sha256.Sum256([]byte(options.Repo.Root))
	return &kind{
		options: options,
		cluster: options.Name + "-" + hex.EncodeToString(mark[:3]),
		image:   os.Getenv(NodeImageVariable),
		runner: runner{
			repo: options.Repo, out: options.Out,
			log: filepath.Join(state, options.Name+".kind.log"),
		},
	}
}

func (k *kind) path(ending string) string {
	return filepath.Join(k.options.Repo.State(), k.options.Name+".kind"+ending)
}

// Kubeconfig returns .workshop/NAME.kind.kubeconfig.
func (k *kind) Kubeconfig() string { return k.path(".kubeconfig") }

// Environment implements Cluster.
func (k *kind) Environment() []string { return environment(k.options.Repo, k.Kubeconfig()) }

// Up creates the cluster, recreates one that was only partly created, or reuses a complete one and rewrites its
// kubeconfig. It fails if the cluster exists, but was not made in this checkout.
func (k *kind) Up(ctx context.Context) error {
	unlock, found, err := k.find(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	switch found.state {
	case kindForeign:
		return k.foreign()
	case kindOurs:
		return k.reuse(ctx, found.nodes)
	case kindHalfMade:
		fmt.Fprintf(k.options.Out, "Cluster %s was only partly created: recreating it.\n", k.cluster)
		if err := k.remove(ctx); err != nil {
			return err
		}
	}
	return k.create(ctx)
}

// Choose implements Cluster.
func (k *kind) Choose(ctx context.Context) error { return choose(ctx, k.options, k.Kubeconfig()) }

// reuse starts stopped nodes, for example after a restart of the machine, writes the kubeconfig, and waits for the API
// server.
func (k *kind) reuse(ctx context.Context, nodes []container) error {
	var stopped []string
	for _, node := range nodes {
		if !node.running {
			stopped = append(stopped, node.id)
		}
	}
	if len(stopped) > 0 {
		fmt.Fprintf(k.options.Out, "Cluster %s has stopped nodes: starting them (%d of %d).\n", k.cluster, len(stopped), len(nodes))
		if _, err := docker(ctx, append([]string{"start"}, stopped...)...); err != nil {
			return err
		}
	}
	if len(nodes) < k.options.Nodes {
		fmt.Fprintf(k.options.Out, "Cluster %s has only %d of the %d nodes that you asked for: to change that, run `%s` first.\n", k.cluster, len(nodes), k.options.Nodes, k.options.MakeCommand("down"))
	}
	if err := k.exportKubeconfig(ctx); err != nil {
		return err
	}
	client, err := kube.Open(k.Kubeconfig())
	if err != nil {
		return err
	}
	err = poll(ctx, kindStartLimit, func(ctx context.Context) bool {
		limited, cancel := context.WithTimeout(ctx, answerLimit)
		defer cancel()
		_, err := client.Get(limited, "/readyz")
		return err == nil
	})
	if errors.Is(err, errTimeLimit) {
		return fmt.Errorf("the kind cluster %s does not answer: `%s` removes it, `%s` makes a new one", k.cluster, k.options.MakeCommand("down"), k.options.MakeCommand("up"))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(k.options.Out, "Cluster %s is running.\n", k.cluster)
	return nil
}

func (k *kind) exportKubeconfig(ctx context.Context) error {
	// If kind was stopped while writing the file, it has left its lock behind.
	if err := os.RemoveAll(k.Kubeconfig() + ".lock"); err != nil {
		return private.Explain(err)
	}
	return k.runner.kind(ctx, "export", "kubeconfig", "--name", k.cluster, "--kubeconfig", k.runner.relative(k.Kubeconfig()))
}

func (k *kind) create(ctx context.Context) error {
	if k.options.Port != 0 {
		// It doesn't matter whether this user may listen on the port, because it is the container engine that listens.
		if err := controlplane.CheckPort(k.options.Port); errors.Is(err, controlplane.ErrPortTaken) {
			return fmt.Errorf("%w with PORT=, or leave PORT out for a free one", err)
		}
	}
	if err := private.WriteFile(k.path(".yaml"), []byte(k.config())); err != nil {
		return err
	}
	made := record{Phase: phaseCreating, Root: k.options.Repo.Root, Image: k.image, Port: k.options.Port}
	if err := made.write(k.path(".json")); err != nil {
		return err
	}
	err := k.createOnce(ctx, made)
	if errors.Is(err, errKindTaken) {
		return errors.Join(k.foreign(), k.removeFiles())
	}
	if err != nil {
		// Remove the unfinished cluster even if the context has ended.
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), kindRemoveLimit)
		defer cancel()
		if errors.Is(err, errInterrupted) {
			err = fmt.Errorf("interrupted: cluster %s was not finished, so this command removes it", k.cluster)
		}
		return errors.Join(err, k.remove(cleanup))
	}
	return nil
}

func (k *kind) createOnce(ctx context.Context, made record) error {
	limited, cancel := context.WithTimeout(ctx, kindLimit)
	defer cancel()
	args := []string{"create", "cluster", "--name", k.cluster, "--config", k.runner.relative(k.path(".yaml")), "--kubeconfig", k.runner.relative(k.Kubeconfig()), "--wait", "3m"}
	if k.image != "" {
		args = append(args, "--image", k.image)
	}
	err := k.runner.kind(limited, args...)
	switch {
	case err != nil && strings.Contains(err.Error(), "already exist for a cluster"):
		return errKindTaken
	case err != nil && strings.Contains(err.Error(), "pull image"):
		return fmt.Errorf("%w: is the registry reachable? %s=… chooses another node image", err, NodeImageVariable)
	case err != nil:
		return err
	}
	nodes, err := containers(ctx, k.cluster)
	if err != nil {
		return err
	}
	made.Phase, made.Container = phaseReady, controlPlane(nodes)
	return made.write(k.path(".json"))
}

func (k *kind) config() string {
	config := kindConfig
	if k.options.Port != 0 {
		config = strings.Replace(config, "\nnodes:", fmt.Sprintf("\n  apiServerPort: %d\nnodes:", k.options.Port), 1)
	}
	return config + strings.Repeat("- role: worker\n", k.options.Nodes-1)
}

// Down removes the cluster's containers and its files. If .workshop/kubeconfig pointed at the cluster, Down points the
// link at another cluster or, if there is none, removes the link. Down fails if the cluster exists, but was not made in
// this checkout.
func (k *kind) Down(ctx context.Context) error {
	if err := k.down(ctx); err != nil {
		return err
	}
	return unchoose(ctx, k.options.Repo.State(), k.Kubeconfig())
}

func (k *kind) down(ctx context.Context) error {
	unlock, found, err := k.find(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	switch found.state {
	case kindForeign:
		return k.foreign()
	case kindAbsent:
		fmt.Fprintf(k.options.Out, "There is no kind cluster %s.\n", k.cluster)
		return k.removeFiles()
	}
	if err := k.remove(ctx); err != nil {
		return err
	}
	fmt.Fprintf(k.options.Out, "Cluster %s is removed.\n", k.cluster)
	return os.RemoveAll(k.runner.log)
}

// removedLooks is how many checks in a row must find no container before a cluster counts as removed. They take about two
// seconds.
const removedLooks = 20

// remove deletes the cluster's containers and files. If kind was stopped while it was creating the cluster, the engine
// may still be making a container, so remove keeps checking for a while after it finds none.
func (k *kind) remove(ctx context.Context) error {
	removal := []string{"delete", "cluster", "--name", k.cluster, "--kubeconfig", k.runner.relative(k.Kubeconfig())}
	if err := k.runner.kind(ctx, removal...); err != nil {
		return err
	}
	clean := 0
	err := poll(ctx, kindRemoveLimit, func(ctx context.Context) bool {
		left, err := containers(ctx, k.cluster)
		if err != nil {
			return false
		}
		if len(left) > 0 {
			clean = 0
			_, _ = k.runner.output(ctx, "kind", removal...)
			return false
		}
		clean++
		return clean >= removedLooks
	})
	if err != nil {
		return fmt.Errorf("remove the containers of %s: %w; see `docker ps --all`", k.cluster, err)
	}
	return k.removeFiles()
}

// removeFiles removes the cluster's files except the log and the lock. If it removed the lock while another command
// waited for it, a third could take a new lock, and two would run at the same time.
func (k *kind) removeFiles() error {
	for _, path := range []string{k.Kubeconfig(), k.Kubeconfig() + ".lock", k.path(".yaml"), k.path(".json")} {
		if err := os.RemoveAll(path); err != nil {
			return private.Explain(err)
		}
	}
	return nil
}

// Status reports whether the cluster exists and was made here and, if so, its version and its nodes.
func (k *kind) Status(ctx context.Context) (Status, error) {
	status := Status{Name: k.cluster, Provider: providers.Kind, Kubeconfig: k.Kubeconfig(), State: StateRunning}
	unlock, found, err := k.find(ctx)
	if err != nil {
		return status, err
	}
	defer unlock()
	switch found.state {
	case kindAbsent:
		status.State, status.Kubeconfig, status.Detail = StateAbsent, "", "`"+k.options.MakeCommand("up")+"` creates it"
	case kindForeign:
		status.State, status.Kubeconfig, status.Detail = StateBroken, "", k.foreign().Error()
	case kindHalfMade:
		status.State, status.Detail = StateBroken, "it was only partly created: `"+k.options.MakeCommand("up")+"` recreates it"
	default:
		describe(ctx, &status, k.options)
	}
	return status, nil
}

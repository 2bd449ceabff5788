package classroom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"example.com/operator-workshop/internal/toolchain"
)

const (
	// startLimit bounds the start of a control plane, which takes about 3 s on an idle machine.
	startLimit = 3 * time.Minute
	// createAttempts is how often creation is tried when another program takes a chosen port meanwhile.
	createAttempts = 3
)

// embedded is a control plane of programs from bin/, run by kwokctl on 127.0.0.1.
type embedded struct {
	options Options
	runner  runner
	// state is .workshop/, dir kwokctl's folder of this cluster in it.
	state, dir string
}

func newEmbedded(options Options) *embedded {
	state := options.Repo.State()
	home := filepath.Join(state, "embedded")
	return &embedded{
		options: options,
		state:   state,
		dir:     filepath.Join(home, "clusters", options.Name),
		runner: runner{
			repo: options.Repo,
			out:  options.Out,
			log:  filepath.Join(state, options.Name+".log"),
			env:  []string{"KWOK_WORKDIR=" + home, "KUBECACHEDIR=" + filepath.Join(state, "kube-cache")},
		},
	}
}

func (e *embedded) path(ending string) string {
	return filepath.Join(e.state, e.options.Name+ending)
}

// Kubeconfig is .workshop/NAME.kubeconfig.
func (e *embedded) Kubeconfig() string { return e.path(".kubeconfig") }

// Up creates the cluster, or starts again what of it does not run.
func (e *embedded) Up(ctx context.Context) error {
	unlock, err := lock(ctx, e.path(".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	found, err := readRecord(e.path(".json"))
	if errors.Is(err, errNoRecord) {
		return e.create(ctx)
	}
	if err != nil {
		return e.damaged(err.Error())
	}
	if found.Phase == phaseCreating {
		fmt.Fprintf(e.options.Out, "Cluster %s was left half made: making it anew.\n", e.options.Name)
		return e.create(ctx)
	}
	if err := e.checkFiles(found); err != nil {
		return err
	}
	if e.options.Port != 0 && e.options.Port != found.Ports.APIServer {
		return fmt.Errorf("cluster %s has its API server on port %d: to move it, run `make down` first", e.options.Name, found.Ports.APIServer)
	}
	running, err := e.running(ctx)
	if err != nil {
		return err
	}
	if running {
		fmt.Fprintf(e.options.Out, "Cluster %s is running.\n", e.options.Name)
		return e.choose()
	}
	return e.restart(ctx, found)
}

// running tells whether every component's process lives and the API server answers.
func (e *embedded) running(ctx context.Context) (bool, error) {
	alive, err := processes(ctx, e.dir)
	if err != nil {
		return false, err
	}
	if len(dead(alive)) > 0 {
		return false, nil
	}
	return e.answers(ctx), nil
}

func dead(alive map[string][]*process.Process) []string {
	var names []string
	for _, name := range componentNames {
		if len(alive[name]) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// answers asks without leaving a trace in the log: it is asked again and again.
func (e *embedded) answers(ctx context.Context) bool {
	quiet := e.runner
	quiet.log = ""
	_, err := quiet.output(ctx, "kubectl", "--kubeconfig", e.Kubeconfig(), "get", "--raw", "/readyz", "--request-timeout=5s")
	return err == nil
}

// damaged is the error for state that only a learner may throw away.
func (e *embedded) damaged(why string) error {
	return fmt.Errorf("the state of cluster %s in .workshop is damaged: %s; `make down` removes the cluster and what it holds, `make up` makes a new one", e.options.Name, why)
}

// checkFiles finds out whether kwokctl's folder is complete.
func (e *embedded) checkFiles(found record) error {
	if found.Root != e.options.Repo.Root {
		return e.damaged("it was made in " + found.Root + ", and its files name that folder")
	}
	for _, name := range []string{"kwok.yaml", "kubeconfig.yaml", "pki/ca.crt", "pki/admin.crt", "pki/admin.key", "etcd/member"} {
		info, err := os.Stat(filepath.Join(e.dir, filepath.FromSlash(name)))
		if err != nil {
			return e.damaged(name + " is missing")
		}
		if info.Size() == 0 {
			return e.damaged(name + " is empty")
		}
	}
	if _, err := os.Stat(e.Kubeconfig()); err != nil {
		return e.damaged(filepath.Base(e.Kubeconfig()) + " is missing")
	}
	return nil
}

// create makes the cluster from nothing. Creations wait for each other, also
// those of other checkouts, because two at the same moment can take each other's ports.
func (e *embedded) create(ctx context.Context) error {
	cache, err := toolchain.CacheDir()
	if err != nil {
		return err
	}
	unlock, err := lock(ctx, filepath.Join(cache, "create.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	for attempt := 1; ; attempt++ {
		err := e.createOnce(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if removeErr := e.remove(ctx); removeErr != nil {
			return errors.Join(err, removeErr)
		}
		if attempt == createAttempts {
			return err
		}
		fmt.Fprintf(e.options.Out, "Attempt %d failed (%v): trying again.\n", attempt, err)
	}
}

func (e *embedded) createOnce(ctx context.Context) error {
	if err := e.remove(ctx); err != nil {
		return err
	}
	chosen, err := e.choosePorts()
	if err != nil {
		return err
	}
	made := record{Phase: phaseCreating, Root: e.options.Repo.Root, Ports: chosen}
	if err := made.write(e.path(".json")); err != nil {
		return err
	}
	if err := e.writeConfig(chosen); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err = e.runner.run(limited, "kwokctl", "create", "cluster", "--name", e.options.Name,
		"--config", e.relative(e.path(".yaml")), "--kubeconfig", e.relative(e.Kubeconfig()))
	if err != nil {
		return err
	}
	if err := e.waitReady(limited); err != nil {
		return err
	}
	err = e.runner.run(limited, "kwokctl", "scale", "node", "--name", e.options.Name, "--replicas", strconv.Itoa(e.options.Nodes))
	if err != nil {
		return err
	}
	if err := e.waitUsable(limited); err != nil {
		return err
	}
	err = e.runner.run(limited, "kwokctl", "snapshot", "save", "--name", e.options.Name, "--path", e.relative(e.freshSnapshot()))
	if err != nil {
		return err
	}
	made.Phase = phaseReady
	if err := made.write(e.path(".json")); err != nil {
		return err
	}
	return e.choose()
}

// freshSnapshot is where the state of the new cluster is kept for Reset.
func (e *embedded) freshSnapshot() string { return filepath.Join(e.dir, "fresh.db") }

// relative shortens a path for the commands that a learner reads.
func (e *embedded) relative(path string) string {
	if rel, err := filepath.Rel(e.options.Repo.Root, path); err == nil {
		return rel
	}
	return path
}

func (e *embedded) choosePorts() (ports, error) {
	free, err := freePorts(6)
	if err != nil {
		return ports{}, err
	}
	chosen := ports{APIServer: free[0], Etcd: free[1], EtcdPeer: free[2], ControllerManager: free[3], Scheduler: free[4], Kwok: free[5]}
	if e.options.Port == 0 {
		return chosen, nil
	}
	chosen.APIServer = e.options.Port
	return chosen, requirePort(e.options.Port, "kube-apiserver", "choose another with PORT=, or leave PORT out for a free one")
}

// restart starts the components that do not run. What the cluster holds is kept.
func (e *embedded) restart(ctx context.Context, found record) error {
	if err := forgetStalePIDs(ctx, e.dir); err != nil {
		return err
	}
	alive, err := processes(ctx, e.dir)
	if err != nil {
		return err
	}
	down := dead(alive)
	for _, name := range down {
		if err := e.requirePorts(found.Ports, name); err != nil {
			return err
		}
	}
	fmt.Fprintf(e.options.Out, "Cluster %s does not run as it should: starting %d of its %d components.\n", e.options.Name, len(down), len(componentNames))
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := e.runner.run(limited, "kwokctl", "start", "cluster", "--name", e.options.Name); err != nil {
		return err
	}
	if err := e.waitReady(limited); err != nil {
		return err
	}
	if err := e.waitUsable(limited); err != nil {
		return err
	}
	return e.choose()
}

func (e *embedded) requirePorts(chosen ports, component string) error {
	const remedy = "end that program and run `make up` again; or give this cluster up with `make down` and make a new one"
	needed := map[string][]int{
		"etcd":                    {chosen.Etcd, chosen.EtcdPeer},
		"kube-apiserver":          {chosen.APIServer},
		"kube-controller-manager": {chosen.ControllerManager},
		"kube-scheduler":          {chosen.Scheduler},
		"kwok-controller":         {chosen.Kwok},
	}
	for _, port := range needed[component] {
		if err := requirePort(port, component, remedy); err != nil {
			return err
		}
	}
	return nil
}

// waitReady waits for the API server; a component that dies meanwhile ends the wait.
func (e *embedded) waitReady(ctx context.Context) error {
	var died error
	err := poll(ctx, startLimit, func(ctx context.Context) bool {
		died = e.allAlive(ctx)
		return died != nil || e.answers(ctx)
	})
	if died != nil {
		return died
	}
	if err != nil {
		return fmt.Errorf("the API server of cluster %s does not answer: %w (its messages: %s)", e.options.Name, err, e.relative(filepath.Join(e.dir, "logs")))
	}
	return nil
}

// allAlive names the first component that has ended. kwokctl reports success for
// components that die right after their start, for example on a port taken meanwhile.
func (e *embedded) allAlive(ctx context.Context) error {
	alive, err := processes(ctx, e.dir)
	if err != nil {
		return err
	}
	for _, name := range dead(alive) {
		log := filepath.Join(e.dir, "logs", name+".log")
		content, _ := os.ReadFile(log)
		return fmt.Errorf("%s ended: %s (all its messages: %s)", name, lastLine(string(content), errors.New("no message")), e.relative(log))
	}
	return nil
}

// waitUsable waits until nodes are Ready and pods can be created: the controller
// manager makes the default service account, without which admission refuses them.
func (e *embedded) waitUsable(ctx context.Context) error {
	waits := [][]string{
		{"wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"},
		{"wait", "--for=create", "serviceaccount/default", "--namespace=default", "--timeout=60s"},
	}
	for _, args := range waits {
		if _, err := e.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return e.allAlive(ctx)
}

func (e *embedded) kubectl(ctx context.Context, args ...string) (string, error) {
	return e.runner.output(ctx, "kubectl", append([]string{"--kubeconfig", e.Kubeconfig()}, args...)...)
}

// choose makes this the cluster that .workshop/kubeconfig leads to.
func (e *embedded) choose() error {
	return chooseKubeconfig(e.state, e.Kubeconfig())
}

// Down ends the cluster's processes and removes its files.
func (e *embedded) Down(ctx context.Context) error {
	unlock, err := lock(ctx, e.path(".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	_, recordErr := readRecord(e.path(".json"))
	if _, err := os.Stat(e.dir); err != nil && errors.Is(recordErr, errNoRecord) {
		fmt.Fprintf(e.options.Out, "There is no cluster %s.\n", e.options.Name)
		return endAll(ctx, e.dir)
	}
	if _, err := os.Stat(filepath.Join(e.dir, "kwok.yaml")); err == nil {
		if err := forgetStalePIDs(ctx, e.dir); err != nil {
			return err
		}
		// kwokctl may refuse a damaged cluster; what it leaves is removed below.
		_ = e.runner.run(ctx, "kwokctl", "delete", "cluster", "--name", e.options.Name, "--kubeconfig", e.relative(e.Kubeconfig()))
	}
	if err := e.remove(ctx); err != nil {
		return err
	}
	fmt.Fprintf(e.options.Out, "Cluster %s is removed.\n", e.options.Name)
	return nil
}

// remove leaves nothing of the cluster: no process, no file.
func (e *embedded) remove(ctx context.Context) error {
	if err := endAll(ctx, e.dir); err != nil {
		return err
	}
	unchoose(e.state, e.Kubeconfig())
	for _, path := range []string{e.dir, e.Kubeconfig(), e.path(".yaml"), e.path(".json")} {
		if err := os.RemoveAll(path); err != nil {
			return explainWrite(err)
		}
	}
	return nil
}

// Reset restores the snapshot that was taken when the cluster was new.
func (e *embedded) Reset(ctx context.Context) error {
	if err := e.Up(ctx); err != nil {
		return err
	}
	unlock, err := lock(ctx, e.path(".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(e.freshSnapshot()); err != nil {
		return e.damaged("its first snapshot is missing")
	}
	if err := forgetStalePIDs(ctx, e.dir); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err = e.runner.run(limited, "kwokctl", "snapshot", "restore", "--name", e.options.Name, "--path", e.relative(e.freshSnapshot()))
	if err != nil {
		return err
	}
	if err := e.waitReady(limited); err != nil {
		return err
	}
	return e.waitUsable(limited)
}

package classroom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

const (
	// startLimit bounds the start of a control plane, which takes about 3 s on an idle machine.
	startLimit = 3 * time.Minute
	// usableLimit bounds the wait for nodes and the default service account once the server is ready.
	usableLimit = time.Minute
	// createAttempts is how often creation is tried when another program takes a chosen port meanwhile.
	createAttempts = 3
	// releaseLimit is how long an ended program's port may take to become free.
	releaseLimit = 3 * time.Second
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
		dir:     filepath.Join(home, ".kwok", "clusters", options.Name),
		runner: runner{
			repo: options.Repo,
			out:  options.Out,
			log:  filepath.Join(state, options.Name+".log"),
			// kwokctl keeps its files in ~/.kwok. A home of its own moves them here and keeps
			// the learner's settings out; KWOK_WORKDIR would do so too, but ends at a space.
			env: []string{"HOME=" + home, "KUBECACHEDIR=" + filepath.Join(state, "kube-cache")},
		},
	}
}

func (e *embedded) path(ending string) string {
	return filepath.Join(e.state, e.options.Name+ending)
}

// Kubeconfig is .workshop/NAME.kubeconfig.
func (e *embedded) Kubeconfig() string { return e.path(".kubeconfig") }

// Environment also leads etcdctl to the cluster's etcd.
func (e *embedded) Environment() []string {
	variables := environment(e.options.Repo, e.Kubeconfig())
	if found, err := readRecord(e.path(".json")); err == nil {
		variables = append(variables, fmt.Sprintf("ETCDCTL_ENDPOINTS=http://127.0.0.1:%d", found.Ports.Etcd))
	}
	return variables
}

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

func (e *embedded) answers(ctx context.Context) bool {
	_, err := e.quietKubectl(ctx, "get", "--raw", "/readyz", "--request-timeout=5s")
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

// restart starts the components that do not run. What the cluster holds is kept.
// It looks again when a component ends meanwhile: one that is being killed while
// `up` looks is still there for a moment.
func (e *embedded) restart(ctx context.Context, found record) error {
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := e.startMissing(limited, found)
		if err == nil {
			return e.choose()
		}
		if attempt == createAttempts || limited.Err() != nil || !errors.Is(err, errComponentEnded) {
			return err
		}
	}
}

func (e *embedded) startMissing(ctx context.Context, found record) error {
	if err := forgetStalePIDs(ctx, e.dir); err != nil {
		return err
	}
	alive, err := processes(ctx, e.dir)
	if err != nil {
		return err
	}
	down := dead(alive)
	for _, name := range down {
		if err := e.requirePorts(ctx, found.Ports, name); err != nil {
			return err
		}
	}
	fmt.Fprintf(e.options.Out, "Cluster %s does not run as it should: starting %d of its %d components.\n", e.options.Name, len(down), len(componentNames))
	if err := e.start(ctx, "start", "cluster", "--name", e.options.Name); err != nil {
		return err
	}
	if err := e.waitReady(ctx); err != nil {
		return err
	}
	return e.waitUsable(ctx)
}

// requirePorts makes sure that a component can have its ports again. A component
// that has just ended gives them back a moment later.
func (e *embedded) requirePorts(ctx context.Context, chosen ports, component string) error {
	const remedy = "end that program and run `make up` again; or give this cluster up with `make down` and make a new one"
	needed := map[string][]int{
		"etcd":                    {chosen.Etcd, chosen.EtcdPeer},
		"kube-apiserver":          {chosen.APIServer},
		"kube-controller-manager": {chosen.ControllerManager},
		"kube-scheduler":          {chosen.Scheduler},
		"kwok-controller":         {chosen.Kwok},
	}
	for _, port := range needed[component] {
		_ = poll(ctx, releaseLimit, func(context.Context) bool { return portFree(port) })
		if err := requirePort(port, component, remedy); err != nil {
			return err
		}
	}
	return nil
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
		_ = e.runner.run(ctx, "kwokctl", "delete", "cluster", "--name", e.options.Name, "--kubeconfig", e.runner.relative(e.Kubeconfig()))
	}
	if err := e.remove(ctx); err != nil {
		return err
	}
	fmt.Fprintf(e.options.Out, "Cluster %s is removed.\n", e.options.Name)
	// The lock stays: removing it while another command waits for it would let both in.
	return os.RemoveAll(e.runner.log)
}

// remove leaves nothing of the cluster: no process, no file.
func (e *embedded) remove(ctx context.Context) error {
	if err := endAll(ctx, e.dir); err != nil {
		return err
	}
	unchoose(e.state, e.Kubeconfig())
	// kwokctl locks the kubeconfig while it writes it. Ended then, it leaves the lock behind, and every later one
	// would go on without a kubeconfig.
	for _, path := range []string{e.dir, e.Kubeconfig(), e.Kubeconfig() + ".lock", e.path(".yaml"), e.path(".json")} {
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
	err = e.runner.run(limited, "kwokctl", "snapshot", "restore", "--name", e.options.Name, "--path", e.runner.relative(e.freshSnapshot()))
	if err != nil {
		return err
	}
	if err := e.waitReady(limited); err != nil {
		return err
	}
	return e.waitUsable(limited)
}

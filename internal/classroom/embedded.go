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
	// loopback is the only address that anything of a cluster listens on.
	loopback = "127.0.0.1"
	// etcdName is the name that kwokctl gives the only member of etcd.
	etcdName = "node0"
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
	dir := filepath.Join(home, ".kwok", "clusters", options.Name)
	return &embedded{
		options: options,
		state:   state,
		dir:     dir,
		runner: runner{
			repo: options.Repo,
			out:  options.Out,
			log:  filepath.Join(state, options.Name+".log"),
			// kwokctl keeps its files in ~/.kwok. A home of its own moves them here and keeps
			// the learner's settings out; KWOK_WORKDIR would do so too, but ends at a space.
			env: append(etcdAccess(dir), "HOME="+home, "KUBECACHEDIR="+filepath.Join(state, "kube-cache")),
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
		variables = append(variables, fmt.Sprintf("ETCDCTL_ENDPOINTS=https://%s:%d", loopback, found.Ports.Etcd))
		variables = append(variables, etcdAccess(e.dir)...)
	}
	return variables
}

// etcdAccess leads etcdctl to the certificates that etcd demands.
func etcdAccess(dir string) []string {
	pki := filepath.Join(dir, "pki")
	return []string{
		"ETCDCTL_CACERT=" + filepath.Join(pki, "ca.crt"), "ETCDCTL_CERT=" + filepath.Join(pki, "admin.crt"), "ETCDCTL_KEY=" + filepath.Join(pki, "admin.key"),
	}
}

// lock keeps other commands away from the cluster, and ends what a killed one has left running.
func (e *embedded) lock(ctx context.Context) (unlock func(), err error) {
	unlock, err = lock(ctx, e.path(".lock"), e.options.Out, lockLimit)
	if err != nil {
		return nil, err
	}
	if err := e.endOrphans(ctx); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// Up creates the cluster, or starts again what of it does not run.
func (e *embedded) Up(ctx context.Context) error {
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return e.up(ctx)
}

func (e *embedded) up(ctx context.Context) error {
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
	if found.Phase == phaseResetting {
		fmt.Fprintf(e.options.Out, "A reset of cluster %s was interrupted: finishing it.\n", e.options.Name)
		return e.finishReset(ctx, found)
	}
	state, err := e.examine(ctx, found.Ports)
	if err != nil {
		return err
	}
	if state.good() {
		fmt.Fprintf(e.options.Out, "Cluster %s is running.\n", e.options.Name)
		return e.choose(ctx)
	}
	if err := e.endHung(ctx, state.hung); err != nil {
		return err
	}
	return e.restart(ctx, found)
}

// endHung ends components that run and don't answer, so that they are started again.
func (e *embedded) endHung(ctx context.Context, names []string) error {
	alive, err := processes(ctx, e.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Fprintf(e.options.Out, "%s of cluster %s does not answer: ending it.\n", name, e.options.Name)
		if err := end(ctx, e.dir, alive[name]); err != nil {
			return err
		}
	}
	return nil
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

// damaged is the error for state that only a learner may throw away.
func (e *embedded) damaged(why string) error {
	return fmt.Errorf("the state of cluster %s in .workshop is damaged: %s; `make down` removes the cluster and what it holds, `make up` makes a new one", e.options.Name, why)
}

// checkFiles finds out whether kwokctl's folder is complete.
func (e *embedded) checkFiles(found record) error {
	if err := e.checkRoot(found); err != nil {
		return err
	}
	if !found.EtcdTLS {
		return e.damaged("it is of an earlier version, whose etcd every user of this machine can read")
	}
	data := "etcd/member"
	if found.Phase == phaseResetting {
		data = "" // a reset takes it away for a moment
	}
	for _, name := range []string{"kwok.yaml", "kubeconfig.yaml", "pki/ca.crt", "pki/admin.crt", "pki/admin.key", data} {
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
			return e.choose(ctx)
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
	if err := e.waitReady(ctx, found.Ports); err != nil {
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
func (e *embedded) choose(ctx context.Context) error {
	return chooseKubeconfig(ctx, e.options, e.Kubeconfig())
}

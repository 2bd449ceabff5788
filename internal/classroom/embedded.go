package classroom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/internal/private"
	"example.com/operator-workshop/internal/providers"
)

// embedded is a control plane run from the programs in bin/, with simulated nodes. Its files are in
// .workshop/clusters/NAME.
type embedded struct {
	options Options
	// dir is the control plane's folder.
	dir   string
	plane *controlplane.ControlPlane
}

func newEmbedded(options Options) (*embedded, error) {
	dir := filepath.Join(options.Repo.State(), "clusters", options.Name)
	plane, err := controlplane.Open(dir, controlplane.Options{
		Assets: options.Repo.Bin(), Port: options.Port, Nodes: options.Nodes, Out: options.Out,
	})
	return &embedded{options: options, dir: dir, plane: plane}, err
}

// Kubeconfig returns .workshop/NAME.kubeconfig.
func (e *embedded) Kubeconfig() string {
	return filepath.Join(e.options.Repo.State(), e.options.Name+".kubeconfig")
}

// Environment includes the variables that point etcdctl at the cluster's etcd, if the cluster exists.
func (e *embedded) Environment() []string {
	variables := environment(e.options.Repo, e.Kubeconfig())
	etcd, err := e.plane.EtcdEnvironment()
	if err != nil {
		return variables // there is no cluster yet, or it is damaged
	}
	return append(variables, etcd...)
}

// Up creates the parts of the cluster that are missing, including its kubeconfig, and restarts the components that are
// not running or do not respond.
func (e *embedded) Up(ctx context.Context) error {
	status, err := e.plane.Status(ctx)
	if err == nil && status.Complete && status.Running() {
		fmt.Fprintf(e.options.Out, "Cluster %s is running.\n", e.options.Name)
	}
	return e.finish(e.plane.Up(ctx))
}

// Choose implements Cluster.
func (e *embedded) Choose(ctx context.Context) error { return choose(ctx, e.options, e.Kubeconfig()) }

// Reset restores the cluster to the state it had when it was new, or creates the cluster if it does not exist.
func (e *embedded) Reset(ctx context.Context) error {
	err := e.plane.Reset(ctx)
	if errors.Is(err, controlplane.ErrNotFound) {
		return e.Up(ctx)
	}
	return e.finish(err)
}

// finish completes Up and Reset: it writes the cluster's kubeconfig or, if err is not nil, explains the error.
func (e *embedded) finish(err error) error {
	if err != nil {
		return e.explain(err)
	}
	if err := private.MakeDir(e.options.Repo.State()); err != nil {
		return err
	}
	content, err := os.ReadFile(e.plane.KubeconfigPath())
	if err != nil {
		return err
	}
	if existing, err := os.ReadFile(e.Kubeconfig()); err == nil && string(existing) == string(content) {
		return nil
	}
	return private.WriteFile(e.Kubeconfig(), content)
}

// explain adds advice for the learner to an error. If it has no advice, it adds the name of the cluster.
func (e *embedded) explain(err error) error {
	var damaged *controlplane.DamagedError
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: `%s` continues from here, `%s` removes what exists", errInterrupted, e.options.MakeCommand("up"), e.options.MakeCommand("down"))
	case errors.As(err, &damaged):
		return fmt.Errorf("cluster %s in .workshop is damaged: %s; `%s` removes the cluster and everything in it, `%s` makes a new one",
			e.options.Name, damaged.Reason, e.options.MakeCommand("down"), e.options.MakeCommand("up"))
	case errors.Is(err, controlplane.ErrPortTaken):
		return fmt.Errorf("%w with PORT=, or leave PORT out for a free one", err)
	}
	return fmt.Errorf("cluster %s: %w", e.options.Name, err)
}

// Down ends the cluster's processes and removes its files. If .workshop/kubeconfig pointed at the cluster, Down points
// the link at another cluster or, if there is none, removes the link.
func (e *embedded) Down(ctx context.Context) error {
	if err := os.RemoveAll(e.Kubeconfig()); err != nil {
		return private.Explain(err)
	}
	if err := unchoose(ctx, e.options.Repo.State(), e.Kubeconfig()); err != nil {
		return err
	}
	if _, err := os.Lstat(e.dir); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(e.options.Out, "There is no cluster %s.\n", e.options.Name)
		return nil
	}
	if err := e.plane.Remove(ctx); err != nil {
		return e.explain(err)
	}
	fmt.Fprintf(e.options.Out, "Cluster %s is removed.\n", e.options.Name)
	return nil
}

// Status reports which processes are running. If the cluster is complete and all its components respond, Status also
// reports its version and its nodes.
func (e *embedded) Status(ctx context.Context) (Status, error) {
	status := Status{Name: e.options.Name, Provider: providers.Embedded, Kubeconfig: e.Kubeconfig()}
	up := "`" + e.options.MakeCommand("up") + "`"
	found, err := e.plane.Status(ctx)
	var damaged *controlplane.DamagedError
	switch {
	case errors.Is(err, controlplane.ErrNotFound):
		status.State, status.Kubeconfig, status.Detail = StateAbsent, "", up+" creates it"
		return status, nil
	case errors.As(err, &damaged):
		status.State, status.Detail = StateBroken, e.explain(err).Error()
		return status, nil
	case err != nil:
		return status, err
	}
	dead, hung := 0, ""
	for _, component := range found.Components {
		status.Components = append(status.Components, measure(ctx, component))
		switch {
		case component.PID == 0:
			dead++
			status.Detail = component.Name + " is not running: " + up + " repairs it"
		case component.Hung && hung == "":
			hung = component.Name
		}
	}
	status.State = StateBroken
	switch {
	case !found.Complete:
		status.Detail = "it was only partly created: " + up + " completes it"
	case dead == len(found.Components):
		status.State, status.Detail = StateStopped, up+" starts it"
	case dead > 0:
	case hung != "":
		status.Detail = hung + " runs, but does not answer: " + up + " replaces it"
	default:
		status.State = StateRunning
		describe(ctx, &status, e.options)
	}
	return status, nil
}

// measure returns the component with the memory, the processor time and the start time of its process, if it has one.
func measure(ctx context.Context, found controlplane.Component) Component {
	component := Component{Name: found.Name, PID: found.PID}
	if found.PID == 0 {
		return component
	}
	running := &process.Process{Pid: int32(found.PID)}
	if memory, err := running.MemoryInfoWithContext(ctx); err == nil {
		component.Memory = memory.RSS
	}
	if times, err := running.TimesWithContext(ctx); err == nil {
		component.CPUSeconds = times.User + times.System
	}
	if created, err := running.CreateTimeWithContext(ctx); err == nil {
		component.Started = time.UnixMilli(created)
	}
	return component
}

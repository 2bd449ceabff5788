package classroom

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// componentNames are the programs of a running cluster, in the order in which they depend on each other.
var componentNames = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}

// endLimit bounds the wait for killed processes to be gone.
const endLimit = 10 * time.Second

// processes finds the cluster's own processes. kwokctl records bare process
// numbers, and a number may belong to a stranger after a reboot; what counts
// here is the program's path, which lies in the cluster's own folder.
func processes(ctx context.Context, clusterDir string) (map[string][]*process.Process, error) {
	all, err := process.ProcessesWithContext(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string][]*process.Process{}
	for _, candidate := range all {
		if name := componentName(ctx, candidate, clusterDir); name != "" {
			found[name] = append(found[name], candidate)
		}
	}
	return found, nil
}

// componentName is the name of the cluster's component that the process runs, or "".
func componentName(ctx context.Context, candidate *process.Process, clusterDir string) string {
	args, err := candidate.CmdlineSliceWithContext(ctx)
	if err != nil || len(args) == 0 || filepath.Dir(args[0]) != filepath.Join(clusterDir, "bin") {
		return ""
	}
	if is(ctx, candidate, process.Zombie) {
		return ""
	}
	return filepath.Base(args[0])
}

func is(ctx context.Context, candidate *process.Process, state string) bool {
	status, err := candidate.StatusWithContext(ctx)
	return err == nil && slices.Contains(status, state)
}

// stopped tells whether a process was halted by a signal.
func stopped(ctx context.Context, candidate *process.Process) bool {
	return is(ctx, candidate, process.Stop)
}

// endOrphans ends the tools that a killed command has left working on this cluster: they would go on starting
// components and writing files while another command removes them.
func (e *embedded) endOrphans(ctx context.Context) error {
	all, err := process.ProcessesWithContext(ctx)
	if err != nil {
		return err
	}
	for _, candidate := range all {
		if !e.worksHere(ctx, candidate) {
			continue
		}
		// Each tool leads a group of its own, with the tools that it has started. Components are in none of these.
		if err := syscall.Kill(-int(candidate.Pid), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		if err := poll(ctx, endLimit, func(ctx context.Context) bool { return !e.worksHere(ctx, candidate) }); err != nil {
			return err
		}
	}
	return nil
}

// worksHere tells whether the process is a tool that works on this cluster.
func (e *embedded) worksHere(ctx context.Context, candidate *process.Process) bool {
	args, err := candidate.CmdlineSliceWithContext(ctx)
	if err != nil || len(args) == 0 || is(ctx, candidate, process.Zombie) {
		return false
	}
	switch args[0] {
	case filepath.Join(e.options.Repo.Bin(), "kwokctl"):
		name := slices.Index(args, "--name") + 1
		return name > 0 && name < len(args) && args[name] == e.options.Name
	case filepath.Join(e.options.Repo.Bin(), "etcdutl"):
		return slices.Contains(args, e.runner.relative(e.restored()))
	}
	return false
}

// forgetStalePIDs removes the process numbers that are not this cluster's from
// kwokctl's records, because kwokctl would signal whatever has the number now.
// It ends processes of the cluster that kwokctl does not know of, which are left
// when it is interrupted between starting one and writing down its number.
func forgetStalePIDs(ctx context.Context, clusterDir string) error {
	running, err := processes(ctx, clusterDir)
	if err != nil {
		return err
	}
	recorded := map[int32]bool{}
	for name, pid := range recordedPIDs(clusterDir) {
		ours := slices.ContainsFunc(running[name], func(p *process.Process) bool { return p.Pid == pid })
		if ours {
			recorded[pid] = true
			continue
		}
		if err := os.Remove(filepath.Join(clusterDir, "pids", name+".pid")); err != nil {
			return err
		}
	}
	var strays []*process.Process
	for _, component := range running {
		for _, candidate := range component {
			if !recorded[candidate.Pid] {
				strays = append(strays, candidate)
			}
		}
	}
	return end(ctx, clusterDir, strays)
}

// recordedPIDs is what kwokctl wrote down: process numbers by component, 0 for one that cannot be read.
func recordedPIDs(clusterDir string) map[string]int32 {
	recorded := map[string]int32{}
	for _, name := range componentNames {
		content, err := os.ReadFile(filepath.Join(clusterDir, "pids", name+".pid"))
		if err != nil {
			continue
		}
		pid, _ := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 32)
		recorded[name] = int32(pid)
	}
	return recorded
}

// ended names a component among those asked for that was started and does not run any more, or "".
func ended(ctx context.Context, clusterDir string, names ...string) string {
	recorded := recordedPIDs(clusterDir)
	for _, name := range names {
		pid, started := recorded[name]
		if started && componentName(ctx, &process.Process{Pid: pid}, clusterDir) != name {
			return name
		}
	}
	return ""
}

// endAll ends every process of the cluster.
func endAll(ctx context.Context, clusterDir string) error {
	running, err := processes(ctx, clusterDir)
	if err != nil {
		return err
	}
	var all []*process.Process
	for _, component := range running {
		all = append(all, component...)
	}
	return end(ctx, clusterDir, all)
}

// end kills processes and waits until they are gone. Each is looked at once more
// before the signal, so that a number that has changed hands is left alone.
func end(ctx context.Context, clusterDir string, targets []*process.Process) error {
	for _, target := range targets {
		if componentName(ctx, target, clusterDir) == "" {
			continue
		}
		if err := target.KillWithContext(ctx); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return poll(ctx, endLimit, func(ctx context.Context) bool {
		return !slices.ContainsFunc(targets, func(p *process.Process) bool { return componentName(ctx, p, clusterDir) != "" })
	})
}

// poll waits until done reports true.
func poll(ctx context.Context, limit time.Duration, done func(context.Context) bool) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !done(limited) {
		select {
		case <-limited.Done():
			return contextError(limited)
		case <-ticker.C:
		}
	}
	return nil
}

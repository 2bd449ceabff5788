package classroom_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/shirou/gopsutil/v4/process"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/repo"
)

// commandVariable makes the test program do what one command does with a cluster: the value is a verb such as up, the
// root and the name, each on a line.
const commandVariable = "CLASSROOM_TEST_COMMAND"

// mendLimit bounds the command after a kill. kwokctl alone waits two minutes for an API server that never comes.
const mendLimit = 90 * time.Second

func TestMain(m *testing.M) {
	if command := os.Getenv(commandVariable); command != "" {
		if err := obey(strings.Split(command, "\n")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func obey(command []string) error {
	cluster, err := classroom.New(classroom.Options{
		Repo: repo.Repo{Root: command[1]}, Provider: classroom.Embedded, Name: command[2], Nodes: 2, Out: os.Stdout,
	})
	if err != nil {
		return err
	}
	do := map[string]func(context.Context) error{"up": cluster.Up, "down": cluster.Down, "reset": cluster.Reset}
	return do[command[0]](context.Background())
}

// victim is a command that runs in a process of its own.
type victim struct {
	mu     sync.Mutex
	output strings.Builder
}

func (v *victim) printed(text string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Contains(v.output.String(), text)
}

// killAt runs a command, and kills it with SIGKILL when moment returns true. The command may end before.
func killAt(ctx context.Context, t *testing.T, r repo.Repo, verb, name string, moment func(*victim) bool) {
	t.Helper()
	g := NewWithT(t)
	v := &victim{}
	command := exec.CommandContext(ctx, os.Args[0])
	command.Env = append(os.Environ(), commandVariable+"="+strings.Join([]string{verb, r.Root, name}, "\n"))
	output, err := command.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(command.Start()).To(Succeed())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			v.mu.Lock()
			v.output.WriteString(lines.Text() + "\n")
			v.mu.Unlock()
		}
	}()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for done := false; !done && !moment(v); {
		select {
		case <-ended:
			t.Logf("%s ended before it could be killed", verb)
			done = true
		case <-ticker.C:
		}
	}
	g.Expect(command.Process.Kill()).To(Or(Succeed(), MatchError(os.ErrProcessDone)))
	<-ended
	_ = command.Wait() // it was killed
}

// below lists the processes that mention a folder in their arguments.
func below(ctx context.Context, g Gomega, folder string) []string {
	all, err := process.ProcessesWithContext(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	found := []string{}
	for _, each := range all {
		args, err := each.CmdlineSliceWithContext(ctx)
		status, _ := each.StatusWithContext(ctx)
		if err == nil && len(args) > 0 && strings.Contains(strings.Join(args, " "), folder) && (len(status) == 0 || status[0] != process.Zombie) {
			found = append(found, filepath.Base(args[0]))
		}
	}
	return found
}

func TestKilledCommands(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*limit)
	defer cancel()
	r := checkout(t)
	cluster, _ := newCluster(t, r, "cut")
	folder := filepath.Join(r.State(), "embedded", ".kwok", "clusters", "cut")
	exists := func(path ...string) func(*victim) bool {
		return func(*victim) bool { _, err := os.Stat(filepath.Join(path...)); return err == nil }
	}
	gone := func(path ...string) func(*victim) bool {
		return func(*victim) bool { _, err := os.Stat(filepath.Join(path...)); return errors.Is(err, os.ErrNotExist) }
	}
	recorded := func(phase string) func(*victim) bool {
		return func(*victim) bool {
			content, _ := os.ReadFile(filepath.Join(r.State(), "cut.json"))
			return strings.Contains(string(content), phase)
		}
	}
	prints := func(text string) func(*victim) bool { return func(v *victim) bool { return v.printed(text) } }
	absent := func(ctx context.Context, g Gomega) { g.Expect(cluster.Down(ctx)).To(Succeed()) }
	running := func(ctx context.Context, g Gomega) {
		g.Expect(cluster.Up(ctx)).To(Succeed())
		kubectl(ctx, r, cluster, "create", "configmap", "kept")
	}
	stopped := func(ctx context.Context, g Gomega) {
		running(ctx, g)
		for _, pid := range pids(ctx, g, cluster) {
			kill(g, pid)
		}
	}
	const may, must = false, true
	cases := []struct {
		verb   string
		before func(context.Context, Gomega)
		when   string
		moment func(*victim) bool
		// keeps tells whether what the cluster held must still be there.
		keeps bool
	}{
		{"up", absent, "nothing is started", exists(r.State(), "cut.json"), may},
		{"up", absent, "etcd is started", exists(folder, "pids", "etcd.pid"), may},
		{"up", absent, "the API server is started", exists(folder, "pids", "kube-apiserver.pid"), may},
		{"up", absent, "nodes are made", prints("kwokctl scale"), may},
		{"up", absent, "the first snapshot is there", exists(folder, "fresh.db"), may},
		{"up", running, "it has just begun", exists(r.State()), must},
		{"up", stopped, "components are to be started", prints("starting"), must},
		{"up", stopped, "the API server is started", exists(folder, "pids", "kube-apiserver.pid"), must},
		{"reset", running, "etcd's new data are being made", exists(folder, "etcd-restored"), may},
		{"reset", running, "it is recorded", recorded("resetting"), may},
		{"reset", running, "components are to be started", prints("starting"), may},
		{"down", running, "the record is gone", gone(r.State(), "cut.json"), may},
		{"down", running, "the kubeconfig is gone", gone(r.State(), "cut.kubeconfig"), may},
		{"down", running, "the folder is going", gone(folder, "kwok.yaml"), may},
	}
	for _, c := range cases {
		t.Run(c.verb+" when "+c.when, func(t *testing.T) {
			g := NewWithT(t)
			c.before(ctx, g)
			killAt(ctx, t, r, c.verb, "cut", c.moment)
			if recorded("resetting")(nil) && exists(folder, "etcd-restored")(nil) {
				// As if it had been killed a moment later, between the old data and the new: that moment is too short to hit.
				g.Expect(os.RemoveAll(filepath.Join(folder, "etcd"))).To(Succeed())
			}
			quick, cancel := context.WithTimeout(ctx, mendLimit)
			defer cancel()
			g.Expect(cluster.Up(quick)).To(Succeed(), "the next command mends it")
			status, err := cluster.Status(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status.State).To(Equal(classroom.StateRunning), status.Detail)
			g.Expect(status.ReadyNodes).To(Equal(2))
			g.Expect(below(ctx, g, r.Root)).To(ConsistOf("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"), "nothing else runs on")
			kept := kubectl(ctx, r, cluster, "get", "configmap", "kept")
			if c.keeps {
				g.Expect(kept).To(ContainSubstring("kept   0"))
			} else {
				g.Expect(kept).To(Or(ContainSubstring("kept   0"), ContainSubstring("NotFound")), "the cluster is the old one, or an empty one")
			}
		})
	}
	g := NewWithT(t)
	g.Expect(cluster.Down(ctx)).To(Succeed())
	g.Expect(below(ctx, g, r.Root)).To(BeEmpty(), "nothing runs on")
}

func TestHungComponents(t *testing.T) {
	ctx := testContext(t)
	r := checkout(t)
	cluster, _ := newCluster(t, r, "stuck")
	g := NewWithT(t)
	g.Expect(cluster.Up(ctx)).To(Succeed())
	g.Expect(kubectl(ctx, r, cluster, "create", "configmap", "kept")).To(ContainSubstring("created"))
	for name, hung := range map[string][]string{
		"etcd alone":      {"etcd"},
		"every component": {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := pids(ctx, g, cluster)
			for _, each := range hung {
				g.Expect(syscall.Kill(int(before[each]), syscall.SIGSTOP)).To(Succeed())
			}
			status, err := cluster.Status(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status.State).To(Equal(classroom.StateBroken))
			g.Expect(status.Detail).To(ContainSubstring("etcd runs, but does not answer: `make up` replaces it"))

			quick, cancel := context.WithTimeout(ctx, mendLimit)
			defer cancel()
			g.Expect(cluster.Up(quick)).To(Succeed())
			for component, pid := range pids(ctx, g, cluster) {
				g.Expect(pid != before[component]).To(Equal(slices.Contains(hung, component)), "what hangs is replaced, and what answers is left alone: %s", component)
			}
			g.Expect(kubectl(ctx, r, cluster, "get", "configmap", "kept")).To(ContainSubstring("kept"))
		})
	}
}

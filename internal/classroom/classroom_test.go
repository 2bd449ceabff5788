package classroom_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/repo"
)

// limit bounds one test. A cluster starts in a few seconds, but takes longer under load.
const limit = 4 * time.Minute

// checkout makes a folder like a clone after `make tools`, with the tools in bin/. The space in its name must not break
// any part of the classroom.
func checkout(t *testing.T) repo.Repo {
	t.Helper()
	real, err := repo.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(real.Bin(), "kube-apiserver")); err != nil {
		t.Fatal("bin/ has no kube-apiserver: run `make tools` first")
	}
	root := filepath.Join(t.TempDir(), "my workshop")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real.Bin(), filepath.Join(root, "bin")); err != nil {
		t.Fatal(err)
	}
	return repo.Repo{Root: root}
}

// newCluster returns a cluster that has not been started, and removes the cluster when the test ends.
func newCluster(t *testing.T, r repo.Repo, name string) classroom.Cluster {
	t.Helper()
	options := classroom.Options{Repo: r, Provider: providers.Embedded, Name: name, Nodes: 2, Out: io.Discard}
	cluster, err := classroom.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := cluster.Down(ctx); err != nil {
			t.Errorf("remove the cluster: %v", err)
		}
	})
	return cluster
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// pids maps component names to process IDs.
func pids(ctx context.Context, g Gomega, cluster classroom.Cluster) map[string]int {
	status, err := cluster.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]int{}
	for _, component := range status.Components {
		found[component.Name] = component.PID
	}
	return found
}

// kubectl runs bin/kubectl against the cluster and returns its output even if it fails.
func kubectl(ctx context.Context, r repo.Repo, cluster classroom.Cluster, args ...string) string {
	command := exec.CommandContext(ctx, filepath.Join(r.Bin(), "kubectl"), append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...)
	command.Env = append(os.Environ(), "KUBERC=off", "KUBECACHEDIR="+filepath.Join(r.State(), "kube-cache"))
	out, _ := command.CombinedOutput()
	return string(out)
}

func kill(g Gomega, pid int) {
	g.Expect(pid).To(BeNumerically(">", 1))
	g.Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
}

// stop stops a process, and waits until it has stopped: until then, it may still answer a request.
func stop(ctx context.Context, g Gomega, pid int) {
	g.Expect(pid).To(BeNumerically(">", 1))
	g.Expect(syscall.Kill(pid, syscall.SIGSTOP)).To(Succeed())
	g.Eventually(func() (string, error) {
		state, err := exec.CommandContext(ctx, "ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
		return string(state), err
	}).WithTimeout(limit).Should(HavePrefix("T"))
}

func TestClusterLifecycle(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	r := checkout(t)
	cluster := newCluster(t, r, classroom.DefaultName)

	status, err := cluster.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status.State).To(Equal(classroom.StateAbsent), "before the first up")

	g.Expect(cluster.Up(ctx)).To(Succeed())
	status, err = cluster.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status.State).To(Equal(classroom.StateRunning), status.Detail)
	g.Expect(status.Version).To(Equal("v1.37.1"), "the server must report the version it was built from")
	g.Expect(status.Nodes).To(Equal(2))
	g.Expect(status.ReadyNodes).To(Equal(2))
	g.Expect(status.Components).To(HaveLen(5))
	g.Expect(kubectl(ctx, r, cluster, "version")).To(ContainSubstring("Client Version: v1.37.1"))

	t.Run("a second up changes nothing", func(t *testing.T) {
		g := NewWithT(t)
		before := pids(ctx, g, cluster)
		g.Expect(cluster.Up(ctx)).To(Succeed())
		g.Expect(pids(ctx, g, cluster)).To(Equal(before))
	})

	t.Run("the kubeconfig of the chosen cluster is .workshop/kubeconfig", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(cluster.Choose(ctx)).To(Succeed())
		chosen, err := filepath.EvalSymlinks(filepath.Join(r.State(), "kubeconfig"))
		g.Expect(err).NotTo(HaveOccurred())
		own, err := filepath.EvalSymlinks(cluster.Kubeconfig())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(chosen).To(Equal(own))
	})

	t.Run("its environment points etcdctl at its etcd", func(t *testing.T) {
		g := NewWithT(t)
		command := exec.CommandContext(ctx, filepath.Join(r.Bin(), "etcdctl"), "get", "/registry/namespaces/default", "--keys-only")
		command.Env = append(os.Environ(), cluster.Environment()...)
		out, err := command.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		g.Expect(string(out)).To(ContainSubstring("/registry/namespaces/default"))
	})

	t.Run("a cluster with another name does not affect it", func(t *testing.T) {
		g := NewWithT(t)
		before := pids(ctx, g, cluster)
		for _, setting := range cluster.Environment() {
			name, value, _ := strings.Cut(setting, "=")
			t.Setenv(name, value) // as in the shell that `make shell` starts
		}
		second := newCluster(t, r, "two")
		g.Expect(second.Up(ctx)).To(Succeed())
		g.Expect(second.Choose(ctx)).To(Succeed())
		g.Expect(os.Readlink(filepath.Join(r.State(), "kubeconfig"))).To(Equal("workshop.kubeconfig"))
		g.Expect(kubectl(ctx, r, second, "create", "namespace", "only-in-two")).To(ContainSubstring("created"))
		g.Expect(kubectl(ctx, r, cluster, "get", "namespace", "only-in-two")).To(ContainSubstring("NotFound"))
		g.Expect(second.Down(ctx)).To(Succeed())
		g.Expect(pids(ctx, g, cluster)).To(Equal(before))
		g.Expect(os.Readlink(filepath.Join(r.State(), "kubeconfig"))).To(Equal("workshop.kubeconfig"))
	})

	t.Run("killed components are started again and nothing is lost", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(kubectl(ctx, r, cluster, "create", "configmap", "kept")).To(ContainSubstring("created"))
		before := pids(ctx, g, cluster)
		kill(g, before["kube-scheduler"])
		kill(g, before["kwok"])
		g.Eventually(ctx, func(g Gomega) {
			status, err := cluster.Status(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status.State).To(Equal(classroom.StateBroken))
		}).WithTimeout(10 * time.Second).Should(Succeed())
		g.Expect(cluster.Up(ctx)).To(Succeed())
		after := pids(ctx, g, cluster)
		g.Expect(after["etcd"]).To(Equal(before["etcd"]), "a running component must be left alone")
		g.Expect(after["kube-scheduler"]).NotTo(BeZero())

		for _, pid := range after {
			kill(g, pid)
		}
		g.Expect(cluster.Up(ctx)).To(Succeed())
		g.Expect(kubectl(ctx, r, cluster, "get", "configmap", "kept")).To(ContainSubstring("kept"))
	})

	t.Run("reset empties it and keeps its address", func(t *testing.T) {
		g := NewWithT(t)
		before, err := cluster.Status(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cluster.Reset(ctx)).To(Succeed())
		g.Expect(kubectl(ctx, r, cluster, "get", "configmap", "kept")).To(ContainSubstring("NotFound"))
		after, err := cluster.Status(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(after.Server).To(Equal(before.Server))
		g.Expect(after.ReadyNodes).To(Equal(2))
	})

	t.Run("down leaves no process and no file", func(t *testing.T) {
		g := NewWithT(t)
		before := pids(ctx, g, cluster)
		g.Expect(cluster.Down(ctx)).To(Succeed())
		for name, pid := range before {
			g.Eventually(func() error { return syscall.Kill(pid, 0) }).WithTimeout(10*time.Second).Should(MatchError(syscall.ESRCH), "%s still runs", name)
		}
		left, err := filepath.Glob(filepath.Join(r.State(), "clusters", "*"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(left).To(BeEmpty())
		g.Expect(filepath.Join(r.State(), "kubeconfig")).NotTo(BeAnExistingFile())
		g.Expect(cluster.Down(ctx)).To(Succeed(), "a second down must not be an error")
	})
}

func TestStatusSaysWhatToDo(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	r := checkout(t)
	g.Expect(os.MkdirAll(r.State(), 0o755)).To(Succeed())
	g.Expect(os.Chmod(r.State(), 0o755)).To(Succeed(), "before up, other users must be able to enter it")
	cluster := newCluster(t, r, "sick")
	says := func(state classroom.State, detail string) {
		g.THelper()
		status, err := cluster.Status(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(status.State).To(Equal(state), status.Detail)
		g.Expect(status.Detail).To(ContainSubstring(detail))
	}
	g.Expect(cluster.Up(ctx)).To(Succeed())
	says(classroom.StateRunning, "")
	info, err := os.Stat(r.State())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o700)))

	stop(ctx, g, pids(ctx, g, cluster)["etcd"])
	says(classroom.StateBroken, "etcd runs, but does not answer: `make up NAME=sick` replaces it")
	kill(g, pids(ctx, g, cluster)["etcd"])
	g.Eventually(func() int { return pids(ctx, g, cluster)["etcd"] }).WithTimeout(limit).Should(BeZero())
	says(classroom.StateBroken, "etcd is not running: `make up NAME=sick` repairs it")
	for _, pid := range pids(ctx, g, cluster) {
		if pid != 0 {
			kill(g, pid)
		}
	}
	g.Eventually(func() map[string]int { return pids(ctx, g, cluster) }).WithTimeout(limit).Should(HaveEach(0))
	says(classroom.StateStopped, "`make up NAME=sick` starts it")
	g.Expect(os.WriteFile(filepath.Join(r.State(), "clusters", "sick", "controlplane.json"), nil, 0o600)).To(Succeed())
	says(classroom.StateBroken, "`make down NAME=sick` removes the cluster")
	g.Expect(cluster.Up(ctx)).To(MatchError(And(ContainSubstring("cannot be read"), ContainSubstring("make down"))))
	g.Expect(cluster.Down(ctx)).To(Succeed())
	says(classroom.StateAbsent, "`make up NAME=sick` creates it")
}

func TestMovedAndCopiedCheckoutsKeepTheirClusters(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	r := checkout(t)
	cluster := newCluster(t, r, "home")
	g.Expect(cluster.Up(ctx)).To(Succeed())
	g.Expect(kubectl(ctx, r, cluster, "create", "configmap", "kept")).To(ContainSubstring("created"))

	copied := repo.Repo{Root: r.Root + " copy"}
	out, err := exec.CommandContext(ctx, "cp", "-a", r.Root, copied.Root).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	twin := newCluster(t, copied, "home")
	g.Expect(twin.Up(ctx)).To(Succeed())
	g.Expect(kubectl(ctx, copied, twin, "delete", "configmap", "kept")).To(ContainSubstring("deleted"))
	g.Expect(kubectl(ctx, r, cluster, "get", "configmap", "kept")).To(ContainSubstring("kept"), "the original is a different cluster, which must keep its objects")
	g.Expect(twin.Down(ctx)).To(Succeed())

	moved := repo.Repo{Root: r.Root + " moved"}
	g.Expect(os.Rename(r.Root, moved.Root)).To(Succeed())
	found := newCluster(t, moved, "home")
	g.Expect(found.Up(ctx)).To(Succeed())
	g.Expect(kubectl(ctx, moved, found, "get", "configmap", "kept")).To(ContainSubstring("kept"))
	g.Expect(found.Down(ctx)).To(Succeed())
	g.Expect(os.Rename(moved.Root, r.Root)).To(Succeed())
}

func TestUpContinuesAfterAnInterruption(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	cluster := newCluster(t, checkout(t), "cut")
	cut, cancel := context.WithCancel(ctx)
	time.AfterFunc(300*time.Millisecond, cancel)
	g.Expect(cluster.Up(cut)).To(MatchError(ContainSubstring("interrupted: `make up NAME=cut` continues from here")))
	g.Expect(cluster.Up(ctx)).To(Succeed())
}

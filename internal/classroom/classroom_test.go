package classroom_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gopsnet "github.com/shirou/gopsutil/v4/net"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/repo"
)

// limit bounds one test; a cluster comes up in a few seconds, more under load.
const limit = 4 * time.Minute

// checkout makes a folder that has what a clone has after `make tools`: the tools in bin/.
// Its name has a space, which no part of the classroom may stumble over.
func checkout(t *testing.T) repo.Repo {
	t.Helper()
	real, err := repo.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(real.Bin(), "kwokctl")); err != nil {
		t.Fatal("bin/ has no kwokctl: run `make tools` first")
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

// newCluster is a cluster of that checkout, removed when the test ends.
func newCluster(t *testing.T, r repo.Repo, name string, change ...func(*classroom.Options)) (classroom.Cluster, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	options := classroom.Options{Repo: r, Provider: classroom.Embedded, Name: name, Nodes: 2, Out: out}
	for _, each := range change {
		each(&options)
	}
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
	return cluster, out
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// pids maps component names to process numbers.
func pids(ctx context.Context, g Gomega, cluster classroom.Cluster) map[string]int32 {
	status, err := cluster.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]int32{}
	for _, component := range status.Components {
		found[component.Name] = component.PID
	}
	return found
}

// kubectl runs bin/kubectl against the cluster and returns its output, success or not.
func kubectl(ctx context.Context, r repo.Repo, cluster classroom.Cluster, args ...string) string {
	command := exec.CommandContext(ctx, filepath.Join(r.Bin(), "kubectl"), append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...)
	command.Env = append(os.Environ(), "KUBERC=off", "KUBECACHEDIR="+filepath.Join(r.State(), "kube-cache"))
	out, _ := command.CombinedOutput()
	return string(out)
}

func kill(g Gomega, pid int32) {
	g.Expect(pid).To(BeNumerically(">", 1))
	g.Expect(syscall.Kill(int(pid), syscall.SIGKILL)).To(Succeed())
}

func TestClusterLifecycle(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	r := checkout(t)
	cluster, _ := newCluster(t, r, "one")

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

	t.Run("listens on the loopback address only", func(t *testing.T) {
		g := NewWithT(t)
		for _, component := range status.Components {
			connections, err := gopsnet.ConnectionsPidWithContext(ctx, "tcp", component.PID)
			g.Expect(err).NotTo(HaveOccurred())
			listening := 0
			for _, connection := range connections {
				if connection.Status != "LISTEN" {
					continue
				}
				listening++
				g.Expect(connection.Laddr.IP).To(Equal("127.0.0.1"), "%s listens on %s:%d", component.Name, connection.Laddr.IP, connection.Laddr.Port)
			}
			g.Expect(listening).To(BeNumerically(">", 0), "%s should listen somewhere", component.Name)
		}
	})

	t.Run("a second up changes nothing", func(t *testing.T) {
		g := NewWithT(t)
		before := pids(ctx, g, cluster)
		g.Expect(cluster.Up(ctx)).To(Succeed())
		g.Expect(pids(ctx, g, cluster)).To(Equal(before))
	})

	t.Run("the kubeconfig of the cluster brought up last is .workshop/kubeconfig", func(t *testing.T) {
		g := NewWithT(t)
		chosen, err := filepath.EvalSymlinks(filepath.Join(r.State(), "kubeconfig"))
		g.Expect(err).NotTo(HaveOccurred())
		own, err := filepath.EvalSymlinks(cluster.Kubeconfig())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(chosen).To(Equal(own))
	})

	t.Run("its environment leads etcdctl to its etcd", func(t *testing.T) {
		g := NewWithT(t)
		command := exec.CommandContext(ctx, filepath.Join(r.Bin(), "etcdctl"), "get", "/registry/namespaces/default", "--keys-only")
		command.Env = append(os.Environ(), cluster.Environment()...)
		out, err := command.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		g.Expect(string(out)).To(ContainSubstring("/registry/namespaces/default"))
	})

	t.Run("a cluster of another name lives and ends beside it", func(t *testing.T) {
		g := NewWithT(t)
		before := pids(ctx, g, cluster)
		second, _ := newCluster(t, r, "two")
		g.Expect(second.Up(ctx)).To(Succeed())
		g.Expect(kubectl(ctx, r, second, "create", "namespace", "only-in-two")).To(ContainSubstring("created"))
		g.Expect(kubectl(ctx, r, cluster, "get", "namespace", "only-in-two")).To(ContainSubstring("NotFound"))
		g.Expect(second.Down(ctx)).To(Succeed())
		g.Expect(pids(ctx, g, cluster)).To(Equal(before))
	})

	t.Run("killed components are started again and nothing is lost", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(kubectl(ctx, r, cluster, "create", "configmap", "kept")).To(ContainSubstring("created"))
		before := pids(ctx, g, cluster)
		kill(g, before["kube-scheduler"])
		kill(g, before["kwok-controller"])
		g.Eventually(ctx, func(g Gomega) {
			status, err := cluster.Status(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status.State).To(Equal(classroom.StateBroken))
		}).WithTimeout(10 * time.Second).Should(Succeed())
		g.Expect(cluster.Up(ctx)).To(Succeed())
		after := pids(ctx, g, cluster)
		g.Expect(after["etcd"]).To(Equal(before["etcd"]), "what lives is left alone")
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
			g.Eventually(func() error { return syscall.Kill(int(pid), 0) }).WithTimeout(10*time.Second).Should(MatchError(syscall.ESRCH), "%s still runs", name)
		}
		left, err := filepath.Glob(filepath.Join(r.State(), "embedded", ".kwok", "clusters", "*"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(left).To(BeEmpty())
		g.Expect(filepath.Join(r.State(), "kubeconfig")).NotTo(BeAnExistingFile())
		g.Expect(cluster.Down(ctx)).To(Succeed(), "a second down is no error")
	})
}

func TestInterruptedUp(t *testing.T) {
	// The moments fall into different steps of a creation: writing files, starting
	// the processes, waiting for them, adding nodes.
	for _, moment := range []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 1200 * time.Millisecond, 2500 * time.Millisecond} {
		t.Run("after "+moment.String(), func(t *testing.T) {
			g := NewWithT(t)
			ctx := testContext(t)
			r := checkout(t)
			cluster, _ := newCluster(t, r, "cut")
			cut, cancel := context.WithTimeout(ctx, moment)
			defer cancel()
			if err := cluster.Up(cut); err == nil {
				t.Logf("the cluster was up before %s", moment)
			}
			g.Expect(cluster.Up(ctx)).To(Succeed(), "the next up must make a whole cluster of it")
			status, err := cluster.Status(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status.State).To(Equal(classroom.StateRunning), status.Detail)

			again, stop := context.WithTimeout(ctx, moment)
			defer stop()
			other, _ := newCluster(t, r, "other")
			_ = other.Up(again)
			g.Expect(other.Down(ctx)).To(Succeed(), "down must remove whatever there is")
			status, err = other.Status(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status.State).To(Equal(classroom.StateAbsent))
		})
	}
}

func TestStalePIDsOfStrangers(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	r := checkout(t)
	cluster, _ := newCluster(t, r, "stale")
	g.Expect(cluster.Up(ctx)).To(Succeed())
	for _, pid := range pids(ctx, g, cluster) {
		kill(g, pid)
	}
	stranger := exec.CommandContext(ctx, "sleep", "600")
	g.Expect(stranger.Start()).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- stranger.Wait() }()
	t.Cleanup(func() { _ = stranger.Process.Kill() })
	records, err := filepath.Glob(filepath.Join(r.State(), "embedded", ".kwok", "clusters", "stale", "pids", "*.pid"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(records).To(HaveLen(5))
	lie := func() {
		for _, record := range records {
			g.Expect(os.WriteFile(record, []byte(strconv.Itoa(stranger.Process.Pid)), 0o644)).To(Succeed())
		}
	}

	lie()
	g.Expect(cluster.Up(ctx)).To(Succeed())
	g.Expect(ended).NotTo(Receive(), "up must not touch the stranger")
	lie()
	g.Expect(cluster.Down(ctx)).To(Succeed())
	g.Consistently(ended).WithTimeout(500*time.Millisecond).ShouldNot(Receive(), "down must not touch the stranger")
	left, err := cluster.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left.State).To(Equal(classroom.StateAbsent))
}

func TestTwoCheckoutsAtOnce(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	first, _ := newCluster(t, checkout(t), "same")
	second, _ := newCluster(t, checkout(t), "same")
	var both sync.WaitGroup
	errs := make([]error, 2)
	for i, cluster := range []classroom.Cluster{first, second} {
		both.Go(func() { errs[i] = cluster.Up(ctx) })
	}
	both.Wait()
	g.Expect(errs).To(HaveEach(BeNil()))
	one, two := pids(ctx, g, first), pids(ctx, g, second)
	for name, pid := range one {
		g.Expect(two[name]).NotTo(Equal(pid))
	}
	g.Expect(first.Down(ctx)).To(Succeed())
	g.Expect(pids(ctx, g, second)).To(Equal(two))
}

func TestTwoUpsAtOnce(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	r := checkout(t)
	first, _ := newCluster(t, r, "once")
	second, _ := newCluster(t, r, "once")
	var both sync.WaitGroup
	errs := make([]error, 2)
	for i, cluster := range []classroom.Cluster{first, second} {
		both.Go(func() { errs[i] = cluster.Up(ctx) })
	}
	both.Wait()
	g.Expect(errs).To(HaveEach(BeNil()))
	g.Expect(pids(ctx, g, first)).To(Equal(pids(ctx, g, second)))
}

func TestDamagedState(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	r := checkout(t)
	cluster, _ := newCluster(t, r, "hurt")
	g.Expect(cluster.Up(ctx)).To(Succeed())
	record := filepath.Join(r.State(), "hurt.json")
	whole, err := os.ReadFile(record)
	g.Expect(err).NotTo(HaveOccurred())
	folder := filepath.Join(r.State(), "embedded", ".kwok", "clusters", "hurt")

	refused := func(because string) {
		g.THelper()
		err := cluster.Up(ctx)
		g.Expect(err).To(MatchError(SatisfyAll(ContainSubstring(because), ContainSubstring("make down"))))
		g.Expect(strings.Count(err.Error(), "\n")).To(BeZero(), "an error is one line")
	}

	g.Expect(os.WriteFile(record, []byte(`{"phase": "rea`), 0o644)).To(Succeed())
	refused("hurt.json cannot be read")
	g.Expect(os.WriteFile(record, []byte(`{"phase": "unheard-of"}`), 0o644)).To(Succeed())
	refused("unknown phase")
	g.Expect(os.WriteFile(record, bytes.ReplaceAll(whole, []byte("my workshop"), []byte("elsewhere")), 0o644)).To(Succeed())
	refused("it was made in")
	g.Expect(os.WriteFile(record, whole, 0o644)).To(Succeed())
	g.Expect(os.Truncate(filepath.Join(folder, "kwok.yaml"), 0)).To(Succeed())
	refused("kwok.yaml is empty")
	g.Expect(os.Remove(filepath.Join(folder, "kwok.yaml"))).To(Succeed())
	refused("kwok.yaml is missing")

	g.Expect(pids(ctx, g, cluster)).NotTo(ContainElement(BeZero()), "a refused up leaves everything as it was")
	g.Expect(cluster.Down(ctx)).To(Succeed())
	g.Expect(cluster.Up(ctx)).To(Succeed())
}

func TestHalfMadeState(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	r := checkout(t)
	cluster, out := newCluster(t, r, "half")
	folder := filepath.Join(r.State(), "embedded", ".kwok", "clusters", "half")
	g.Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "kwok.yaml"), []byte("kind: Kwok"), 0o644)).To(Succeed())
	content, err := json.Marshal(map[string]any{"phase": "creating", "root": r.Root})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(r.State(), "half.json"), content, 0o644)).To(Succeed())
	g.Expect(cluster.Up(ctx)).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring("half made"))
}

func TestOccupiedPorts(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	r := checkout(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	taken := listener.Addr().(*net.TCPAddr).Port
	blocked, _ := newCluster(t, r, "blocked", func(o *classroom.Options) { o.Port = taken })
	g.Expect(blocked.Up(ctx)).To(MatchError(SatisfyAll(
		ContainSubstring("port "+strconv.Itoa(taken)), ContainSubstring("PORT="))))
	status, err := blocked.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status.State).To(Equal(classroom.StateAbsent), "nothing is left half done")

	cluster, _ := newCluster(t, r, "moved")
	g.Expect(cluster.Up(ctx)).To(Succeed())
	status, err = cluster.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	for _, pid := range pids(ctx, g, cluster) {
		kill(g, pid)
	}
	address := strings.TrimPrefix(status.Server, "https://")
	var intruder net.Listener
	g.Eventually(func() (err error) { intruder, err = net.Listen("tcp", address); return err }).WithTimeout(10 * time.Second).Should(Succeed())
	g.Expect(cluster.Up(ctx)).To(MatchError(SatisfyAll(ContainSubstring("(kube-apiserver) is taken"), ContainSubstring("make up"))))
	g.Expect(intruder.Close()).To(Succeed())
	g.Expect(cluster.Up(ctx)).To(Succeed(), "once the port is free the cluster comes back")
}

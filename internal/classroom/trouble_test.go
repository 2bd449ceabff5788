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

	"example.com/operator-workshop/internal/classroom"
)

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

// upAtOnce brings clusters up at the same moment.
func upAtOnce(ctx context.Context, g Gomega, clusters ...classroom.Cluster) {
	var all sync.WaitGroup
	errs := make([]error, len(clusters))
	for i, cluster := range clusters {
		all.Go(func() { errs[i] = cluster.Up(ctx) })
	}
	all.Wait()
	g.Expect(errs).To(HaveEach(BeNil()))
}

func TestTwoCheckoutsAtOnce(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	first, _ := newCluster(t, checkout(t), "same")
	second, _ := newCluster(t, checkout(t), "same")
	upAtOnce(ctx, g, first, second)
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
	upAtOnce(ctx, g, first, second)
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
	g.Expect(os.WriteFile(cluster.Kubeconfig()+".lock", nil, 0o600)).To(Succeed(), "as a kwokctl leaves it that is ended while it writes the kubeconfig")
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

func TestComponentEndsDuringCreation(t *testing.T) {
	for _, name := range []string{"etcd", "kube-controller-manager"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx := testContext(t)
			r := checkout(t)
			cluster, _ := newCluster(t, r, "weak")
			record := filepath.Join(r.State(), "embedded", ".kwok", "clusters", "weak", "pids", name+".pid")
			killed := make(chan error, 1)
			go func() { killed <- killRecorded(ctx, record) }()
			// Without care kwokctl alone would wait two minutes for an API server without etcd.
			quick, cancel := context.WithTimeout(ctx, 90*time.Second)
			defer cancel()
			g.Expect(cluster.Up(quick)).To(Succeed())
			g.Expect(killed).To(Receive(BeNil()), "the component must have been killed for this test to say anything")
			g.Expect(pids(ctx, g, cluster)).NotTo(ContainElement(BeZero()))
		})
	}
}

// killRecorded waits until kwokctl has written down a process number, and kills that process.
func killRecorded(ctx context.Context, record string) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if content, err := os.ReadFile(record); err == nil && len(content) > 0 {
			pid, err := strconv.Atoi(string(content))
			if err != nil {
				return err
			}
			return syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

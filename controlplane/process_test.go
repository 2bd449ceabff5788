package controlplane_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/controlplane"
)

func TestAnotherProgramWithAComponentsProcessID(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := testContext(t)
	dir := filepath.Join(t.TempDir(), "stale")
	plane, _ := open(t, dir, controlplane.Options{})
	g.Expect(plane.Up(ctx)).To(Succeed())
	g.Expect(plane.Down(ctx)).To(Succeed())
	stranger := exec.CommandContext(ctx, "sleep", "600")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	g.Expect(stranger.Start()).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- stranger.Wait() }()
	t.Cleanup(func() { _ = stranger.Process.Kill() })
	lie := func() {
		for _, component := range controlplane.Components {
			file := filepath.Join(dir, "run", component)
			content, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			started, _, _ := strings.Cut(string(content), "\n")
			g.Expect(os.WriteFile(file, []byte(started+"\n"+strconv.Itoa(stranger.Process.Pid)+"\n"), 0o600)).To(Succeed())
		}
	}
	lie()
	g.Expect(pids(ctx, g, plane)).To(BeEmpty(), "as after a reboot, no component may count as running")
	g.Expect(plane.Up(ctx)).To(Succeed())
	g.Expect(plane.Down(ctx)).To(Succeed())
	lie()
	g.Expect(plane.Remove(ctx)).To(Succeed())
	g.Consistently(ended).WithTimeout(500 * time.Millisecond).ShouldNot(Receive())
}

func TestUpRestartsAComponentThatEnds(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]struct{ component, when string }{
		"etcd":                    {"etcd", "run/etcd"},
		"kube-controller-manager": {"kube-controller-manager", "run/kube-controller-manager"},
		"kwok":                    {"kwok", "run/kwok"},
		// If etcd's write-ahead log exists, but lacks its first entries, etcd never responds when it is started again
		// with the same data.
		"etcd while it creates its data": {"etcd", "etcd-1/member/wal/*-*.wal"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx := testContext(t)
			dir := filepath.Join(t.TempDir(), "weak")
			plane, _ := open(t, dir, controlplane.Options{})
			up := make(chan error, 1)
			go func() { up <- plane.Up(ctx) }()
			g.Eventually(func(g Gomega) {
				g.Expect(filepath.Glob(filepath.Join(dir, killed.when))).NotTo(BeEmpty())
				content, err := os.ReadFile(filepath.Join(dir, "run", killed.component))
				g.Expect(err).NotTo(HaveOccurred())
				_, number, _ := strings.Cut(strings.TrimSpace(string(content)), "\n")
				pid, err := strconv.Atoi(number)
				g.Expect(err).NotTo(HaveOccurred())
				kill(g, pid)
			}).WithContext(ctx).WithTimeout(limit).WithPolling(100 * time.Microsecond).Should(Succeed())
			g.Expect(<-up).To(Succeed())
			g.Expect(pids(ctx, g, plane)).To(HaveLen(5))
		})
	}
}

package controlplane_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/controlplane/install"
)

func TestStopLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane, err := controlplane.Start(testContext(t), controlplane.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(below(g, plane.Dir())).To(ContainElements(controlplane.Components))
	g.Expect(plane.Stop()).To(Succeed())
	g.Eventually(func(g Gomega) { g.Expect(below(g, plane.Dir())).To(BeEmpty()) }).WithTimeout(limit).Should(Succeed())
	g.Expect(plane.Dir()).NotTo(BeADirectory())
	g.Expect(plane.Stop()).To(Succeed(), "stopping it again must do nothing")
}

func TestAKilledProcessTakesItsControlPlaneAlong(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	dir, kill := startProcess(t, "start")
	g.Expect(below(g, dir)).To(ContainElements(controlplane.Components))
	kill()
	expectNothingLeft(g, dir)
}

// TestAKilledProcessTakesItsScratchFolderAlong uses the same control plane twice, as two processes would, and then
// kills the process that made the folder.
func TestAKilledProcessTakesItsScratchFolderAlong(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := testContext(t)
	dir, kill := startProcess(t, "scratch")
	installed := 0
	options := controlplane.Options{Temporary: true, Install: func(context.Context, *controlplane.ControlPlane) error {
		installed++
		return nil
	}}
	for range 2 {
		plane, err := controlplane.Open(filepath.Join(dir, "shared"), options)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(plane.Up(ctx)).To(Succeed())
	}
	g.Expect(installed).To(Equal(1), "the second Up must find the control plane of the first")
	g.Expect(below(g, dir)).To(ContainElements(controlplane.Components))
	kill()
	expectNothingLeft(g, dir)
}

func TestEndRemovesAScratchFolder(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	dir, end, err := controlplane.Scratch()
	g.Expect(err).NotTo(HaveOccurred())
	plane, err := controlplane.Open(filepath.Join(dir, "left running"), controlplane.Options{Temporary: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plane.Up(testContext(t))).To(Succeed())
	g.Expect(end()).To(Succeed())
	expectNothingLeft(g, dir)
	g.Expect(end()).To(Succeed(), "ending it again must do nothing")
}

// startProcess starts a copy of the test binary, which prints the folder that it has made.
func startProcess(t *testing.T, verb string) (dir string, kill func()) {
	t.Helper()
	g := NewWithT(t)
	started := exec.CommandContext(testContext(t), os.Args[0])
	started.Env = append(os.Environ(), commandVariable+"="+verb)
	started.Stderr = os.Stderr
	output, err := started.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(started.Start()).To(Succeed())
	line, err := bufio.NewReader(output).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(line), func() {
		g.Expect(started.Process.Kill()).To(Succeed())
		g.Expect(started.Wait()).To(MatchError(ContainSubstring("killed")))
	}
}

func expectNothingLeft(g Gomega, dir string) {
	g.Eventually(func(g Gomega) { g.Expect(below(g, dir)).To(BeEmpty()) }).WithTimeout(limit).Should(Succeed())
	g.Eventually(dir).WithTimeout(limit).ShouldNot(BeADirectory())
}

func TestAFailedStartLeavesNothingBehind(t *testing.T) {
	cases := map[string]struct {
		program, script, want string
		limit                 time.Duration
	}{
		"a component ends":                {"kwok", "echo the node is on fire >&2; exit 3", "kwok ended: the node is on fire", time.Minute},
		"the disk is full":                {"etcd", "echo panic: write wal: no space left on device >&2; exit 2", "the disk is full: free some space", time.Minute},
		"it takes too long":               {"kube-apiserver", "sleep 600", context.DeadlineExceeded.Error(), time.Second},
		"the program can't be run at all": {"kube-scheduler", "exec /nowhere", "kube-scheduler ended", time.Minute},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("TMPDIR", t.TempDir())
			ctx, cancel := context.WithTimeout(t.Context(), c.limit)
			defer cancel()
			_, err := controlplane.Start(ctx, controlplane.Options{Assets: assetsWith(t, c.program, c.script)})
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring("\n"), "an error must be one line")
			g.Expect(os.ReadDir(os.TempDir())).To(BeEmpty())
			g.Eventually(func(g Gomega) { g.Expect(below(g, os.TempDir())).To(BeEmpty()) }).WithTimeout(limit).Should(Succeed())
		})
	}
}

// assetsWith returns a folder with the real programs, except for one that is replaced with a script.
func assetsWith(t *testing.T, program, script string) string {
	t.Helper()
	g := NewWithT(t)
	assets, err := controlplane.FindAssets()
	g.Expect(err).NotTo(HaveOccurred())
	dir := t.TempDir()
	for _, name := range controlplane.Programs() {
		if name != program {
			g.Expect(os.Symlink(filepath.Join(assets, name), filepath.Join(dir, name))).To(Succeed())
		}
	}
	g.Expect(os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+script+"\n"), 0o700)).To(Succeed())
	return dir
}

func TestPorts(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := testContext(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	dir := filepath.Join(t.TempDir(), "ports")
	chosen, _ := open(t, dir, controlplane.Options{Port: port})
	g.Expect(chosen.Up(ctx)).To(And(MatchError(controlplane.ErrPortTaken), MatchError(ContainSubstring(strconv.Itoa(port)))))
	g.Expect(taken.Close()).To(Succeed())
	g.Expect(chosen.Up(ctx)).To(Succeed())
	config, err := install.Config(chosen)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Host).To(Equal(fmt.Sprintf("https://127.0.0.1:%d", port)))
	keep(ctx, g, chosen)

	other, _ := open(t, dir, controlplane.Options{Port: port + 1})
	g.Expect(other.Up(ctx)).To(MatchError(ContainSubstring("to move it to port " + strconv.Itoa(port+1))))

	g.Expect(chosen.Down(ctx)).To(Succeed())
	again, err := net.Listen("tcp", taken.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	defer again.Close()
	g.Expect(chosen.Up(ctx)).To(MatchError(controlplane.ErrPortTaken), "a chosen port must be kept")
	free, _ := open(t, dir, controlplane.Options{})
	g.Expect(free.Up(ctx)).To(Succeed(), "another port must be chosen, as after a reboot")
	g.Expect(kept(ctx, g, free)).To(BeTrue())
}

func TestSeveralCommandsAtOnce(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := testContext(t)
	dir := filepath.Join(t.TempDir(), "shared")
	errs := make([]error, 4)
	var all sync.WaitGroup
	for i := range errs {
		plane, err := controlplane.Open(dir, controlplane.Options{})
		g.Expect(err).NotTo(HaveOccurred())
		all.Go(func() {
			errs[i] = plane.Up(ctx)
			if i == 0 {
				errs[i] = plane.Remove(ctx)
			}
		})
	}
	all.Wait()
	g.Expect(errs).To(HaveEach(BeNil()))
	plane, _ := open(t, dir, controlplane.Options{})
	g.Expect(plane.Up(ctx)).To(Succeed())
	g.Expect(below(g, dir)).To(ConsistOf(controlplane.Components))
}

func TestDamagedFoldersAreReportedAndCanBeRemoved(t *testing.T) {
	t.Parallel()
	cases := map[string]func(dir string) error{
		"controlplane.json cannot be read": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "controlplane.json"), []byte("{"), 0o600)
		},
		"pki-1/ca.key is missing":  func(dir string) error { return os.Remove(filepath.Join(dir, "pki-1", "ca.key")) },
		"pki-1/etcd.crt is empty":  func(dir string) error { return os.Truncate(filepath.Join(dir, "pki-1", "etcd.crt"), 0) },
		"etcd-1/member is missing": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "etcd-1")) },
	}
	g := NewWithT(t)
	ctx := testContext(t)
	dir := filepath.Join(t.TempDir(), "sound")
	sound, _ := open(t, dir, controlplane.Options{})
	g.Expect(sound.Up(ctx)).To(Succeed())
	g.Expect(sound.Down(ctx)).To(Succeed())
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			copied := filepath.Join(t.TempDir(), "damaged")
			content, err := exec.CommandContext(ctx, "cp", "-a", dir, copied).CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), string(content))
			g.Expect(damage(copied)).To(Succeed())
			plane, _ := open(t, copied, controlplane.Options{})
			var damaged *controlplane.DamagedError
			for _, err := range []error{plane.Up(ctx), plane.Reset(ctx)} {
				g.Expect(err).To(MatchError(ContainSubstring(name)))
				g.Expect(errors.As(err, &damaged)).To(BeTrue())
			}
			g.Expect(plane.Remove(ctx)).To(Succeed())
			g.Expect(exists(copied)).To(BeFalse())
		})
	}
}

package operatortest

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// processIDs returns the ids of a cluster's programs.
func processIDs(g Gomega, dir string) []int {
	content, err := os.ReadFile(filepath.Join(dir, "pids"))
	g.Expect(err).NotTo(HaveOccurred())
	var ids []int
	for _, line := range strings.Fields(string(content)) {
		id, err := strconv.Atoi(line)
		g.Expect(err).NotTo(HaveOccurred())
		ids = append(ids, id)
	}
	return ids
}

// running returns those of the processes that run. One that ended but was not
// waited for by the init process of a container does not.
func running(ids []int) []int {
	var left []int
	for _, id := range ids {
		if errors.Is(syscall.Kill(id, 0), syscall.ESRCH) {
			continue
		}
		if stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(id), "stat")); err == nil && strings.Contains(string(stat), ") Z ") {
			continue
		}
		left = append(left, id)
	}
	return left
}

func TestStopLeavesNothingBehind(t *testing.T) {
	g := NewWithT(t)
	started := &Cluster{}
	g.Expect(started.Start(t.Context())).To(Succeed())
	dir, ids := started.dir, processIDs(g, started.dir)
	g.Expect(running(ids)).To(HaveLen(5))

	g.Expect(started.Stop()).To(Succeed())
	g.Expect(running(ids)).To(BeEmpty())
	g.Expect(dir).NotTo(BeADirectory())
	g.Expect(started.Stop()).To(Succeed(), "stopping twice does nothing")
}

func TestAKilledTestProcessLeavesNothingBehind(t *testing.T) {
	g := NewWithT(t)
	killed := actor(t.Context(), roleKilled)
	killed.Stderr = os.Stderr
	_, err := killed.StdinPipe() // open, so that the copy waits
	g.Expect(err).NotTo(HaveOccurred())
	output, err := killed.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(killed.Start()).To(Succeed())
	line, err := bufio.NewReader(output).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	dir := strings.TrimSpace(line)
	ids := processIDs(g, dir)
	g.Expect(running(ids)).To(HaveLen(5))

	g.Expect(killed.Process.Kill()).To(Succeed())
	g.Expect(killed.Wait()).To(MatchError(ContainSubstring("killed")))
	g.Eventually(running).WithArguments(ids).WithTimeout(specTimeout).Should(BeEmpty())
	g.Eventually(dir).WithTimeout(specTimeout).ShouldNot(BeADirectory())
}

func TestAFailedStartLeavesNothingBehind(t *testing.T) {
	t.Run("when a program ends on its own, its log is shown", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv("TMPDIR", t.TempDir())
		t.Setenv(assetsVariable, assetsWith(t, "kwok", "echo the node is on fire >&2; exit 3"))
		err := (&Cluster{}).Start(t.Context())
		g.Expect(err).To(MatchError(ContainSubstring("kwok ended on its own; its last lines:\nthe node is on fire")))
		expectNoLeftovers(g)
	})
	t.Run("when the start is interrupted, it ends", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv("TMPDIR", t.TempDir())
		// This API server never gets ready.
		t.Setenv(assetsVariable, assetsWith(t, "kube-apiserver", `[ "$1" = --help ] || { sleep 600; exit 1; }`))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g.Expect((&Cluster{}).Start(ctx)).To(MatchError(context.DeadlineExceeded))
		expectNoLeftovers(g)
	})
}

// assetsWith is a folder of the real programs, except for one that is a script.
func assetsWith(t *testing.T, program, script string) string {
	t.Helper()
	g := NewWithT(t)
	assets, err := findAssets()
	g.Expect(err).NotTo(HaveOccurred())
	dir := t.TempDir()
	for _, name := range programs {
		if name != program {
			g.Expect(os.Symlink(filepath.Join(assets, name), filepath.Join(dir, name))).To(Succeed())
		}
	}
	g.Expect(os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+script+"\n"), 0o700)).To(Succeed())
	return dir
}

// expectNoLeftovers looks for files, and for programs that were started with them.
func expectNoLeftovers(g Gomega) {
	g.Expect(os.ReadDir(os.TempDir())).To(BeEmpty())
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	g.Expect(err).NotTo(HaveOccurred())
	for _, command := range commands {
		content, err := os.ReadFile(command)
		if err != nil {
			continue // it ended since
		}
		g.Expect(string(content)).NotTo(ContainSubstring(os.TempDir()), command)
	}
}

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/repo"
)

// hijackers are settings of a learner's shell that must not affect the workshop.
var hijackers = []string{
	"PORT=3000", "STAGE=production", "CLUSTER=hpc", "NODES=many", "NAME=Me", "N=none", "YES=1", "QUIET=1", "IMG=img", "PLAY=1", "FORCE=1",
	"GOFLAGS=-mod=vendor", "GOOS=windows", "GOARCH=arm64", "CDPATH=/:/usr", "MAKEFLAGS=-j4",
}

// TestACheckoutInAnUnusualFolder works in a folder with a space and an umlaut.
func TestACheckoutInAnUnusualFolder(t *testing.T) {
	c := copyCheckout(t)
	out, status := c.run(t, ".", hijackers, "tools/bootstrap.sh")
	NewWithT(t).Expect(status).To(BeZero(), out)
	t.Run("the make targets, from a shell with other settings", c.frontDoor)
	t.Run("a stage asks before it changes another cluster", c.stagesAsk)
	t.Run("a check that plays the chapter", c.checkPlays)
	t.Run("one play at a time", c.onePlay)
	t.Run("a killed play", c.killedPlay)
}

func (c checkout) frontDoor(t *testing.T) {
	name := "NAME=elsewhere"
	t.Cleanup(func() { _, _ = c.run(t, ".", nil, "make", "down", name) })
	runs := func(t *testing.T, args ...string) string {
		t.Helper()
		out, status := c.run(t, ".", hijackers, "make", args...)
		NewWithT(t).Expect(status).To(BeZero(), out)
		return out
	}
	up := runs(t, "up", name, "NODES=1")
	NewWithT(t).Expect(up).To(ContainSubstring("Next: `make shell NAME=elsewhere`"))
	runs(t, "stage-1", "install", name)

	t.Run("each stage writes its installer", func(t *testing.T) {
		for _, stage := range []string{"stage-2", "stage-3", "stage-4", "stage-5", "stage-6"} {
			runs(t, stage, "build-installer", "IMG=operator:v1")
		}
	})
	t.Run("targets run one after the other", func(t *testing.T) {
		out := runs(t, "-j4", "stage-1", "uninstall", "install", name)
		g := NewWithT(t)
		g.Expect(out).To(MatchRegexp(`(?s)"flighttickets.flights.com" deleted.*serverside-applied`))
		g.Expect(out).NotTo(ContainSubstring("jobserver"))
	})
	t.Run("stages 5 and 6 keep resources that nothing could bring back", func(t *testing.T) {
		for stage, expected := range map[string]struct{ settings, message, kind string }{
			"stage-5": {"ENABLE_WEBHOOKS=false", "there are Passwords (3), and their Secrets would be lost with them: delete them first, or add FORCE=1", "passwords"},
			"stage-6": {"", "there are Klusters (2), and their clusters would be lost with them: delete them first, or add FORCE=1", "klusters"},
		} {
			g := NewWithT(t)
			runs(t, stage, "uninstall", name) // nothing is installed yet
			runs(t, append([]string{stage, "install", "samples", name}, strings.Fields(expected.settings)...)...)
			for _, target := range []string{"uninstall", "undeploy"} {
				out, status := c.run(t, ".", hijackers, "make", stage, target, name)
				g.Expect(status).NotTo(BeZero())
				g.Expect(out).To(ContainSubstring(expected.message))
				g.Expect(out).NotTo(ContainSubstring("deleted"))
			}
			out := runs(t, stage, "uninstall", name, "FORCE=1")
			g.Expect(out).To(MatchRegexp(`customresourcedefinition.* "` + expected.kind + `\..*deleted`))
		}
	})
	t.Run("a chapter is not played if objects that it makes already exist", func(t *testing.T) {
		g := NewWithT(t)
		out, status := c.run(t, ".", nil, "make", "stage-1", name)
		g.Expect(status).NotTo(BeZero())
		g.Expect(out).To(ContainSubstring("the cluster has crd/flighttickets.flights.com already, which docs/1-crd-only.md makes and deletes: nothing was changed; `make reset NAME=elsewhere`"))

		own := []string{"KUBECONFIG=" + filepath.Join(c.root, "own.kubeconfig")}
		copyFile(g, filepath.Join(c.root, ".workshop", "elsewhere.kubeconfig"), filepath.Join(c.root, "own.kubeconfig"))
		out, status = c.run(t, ".", own, "make", "stage-1", "CLUSTER=current", "YES=1")
		g.Expect(status).NotTo(BeZero())
		g.Expect(out).To(ContainSubstring("already, which docs/1-crd-only.md makes and deletes: nothing was changed; remove what is in the way first"))
		runs(t, "stage-1", "samples", name) // the definition is still there
	})
	t.Run("a chapter's commands get none of these settings", func(t *testing.T) {
		g := NewWithT(t)
		text := "# Plain\n\n```console\n$ echo $GOFLAGS$GOOS$CDPATH$MAKEFLAGS $CGO_ENABLED $WORKSHOP_NAME\n0 elsewhere\n```\n"
		g.Expect(os.WriteFile(filepath.Join(c.root, "plain.md"), []byte(text), 0o644)).To(Succeed())
		out, status := c.run(t, ".", slices.Concat(hijackers, []string{"WORKSHOP_NAME=elsewhere"}), "bin/workshop", "play", "plain.md")
		g.Expect(status).To(BeZero(), out)
	})
	t.Run("without a network, and with a module that was never downloaded", func(t *testing.T) {
		g := NewWithT(t)
		offline := slices.Concat(hijackers, []string{"GOPROXY=off"})
		out, status := c.run(t, ".", offline, "make", "up", name)
		g.Expect(status).To(BeZero(), out)
		for _, module := range []string{"go.mod", "05-webhook-password/go.mod"} {
			path := filepath.Join(c.root, module)
			g.Expect(os.WriteFile(path, []byte(read(path)+"\nrequire example.com/nowhere v1.2.3\n"), 0o644)).To(Succeed())
			out, status := c.run(t, ".", offline, "make", "stage-1", "install", name)
			g.Expect(status).To(BeZero(), out)
			g.Expect(out).To(ContainSubstring("Continuing, although some modules are missing"))
		}
	})
	runs(t, "-j4", "down", "status", name)
}

func TestAColonInThePathIsRefused(t *testing.T) {
	g := NewWithT(t)
	from, err := repo.Find(".")
	g.Expect(err).NotTo(HaveOccurred())
	c := checkout{root: filepath.Join(t.TempDir(), "a:b")}
	for _, name := range []string{"Makefile", "go.mod", "tools/bootstrap.sh"} {
		copyFile(g, filepath.Join(from.Root, name), filepath.Join(c.root, name))
	}
	out, status := c.run(t, ".", nil, "make", "status")
	g.Expect(status).NotTo(BeZero())
	g.Expect(out).To(ContainSubstring("has a colon, which separates the folders of a PATH: move it"))
}

func (c checkout) stagesAsk(t *testing.T) {
	kubeconfig := foreignCluster(t)
	stages, err := filepath.Glob(filepath.Join(c.root, "0*", "Makefile"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, path := range stages {
		dir := filepath.Base(filepath.Dir(path))
		targets, err := makeTargets(path)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, target := range targets {
			if !strings.Contains(" "+strings.Join(targetsWithCluster, " ")+" ", " "+target+" ") {
				continue
			}
			t.Run(dir+" "+target, func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				settings := []string{"KUBECONFIG=" + kubeconfig, "YES=1"} // an exported YES=1 must not count as an answer
				out, status := c.run(t, dir, settings, "make", target, "KUBECTL=echo CHANGED", "BIN=../bin")
				g.Expect(status).NotTo(BeZero())
				g.Expect(out).To(ContainSubstring("This changes your own cluster: context production, server http://127.0.0.1:"))
				g.Expect(out).To(ContainSubstring("nothing was changed"))
				g.Expect(out).NotTo(ContainSubstring("CHANGED"))
			})
		}
	}
	t.Run("and continues after yes, with a copy of the kubeconfig", func(t *testing.T) {
		g := NewWithT(t)
		for name, answer := range map[string]struct {
			input string
			args  []string
		}{
			"y":                    {input: "y\n"},
			"YES=1 on the command": {args: []string{"YES=1"}},
		} {
			command := c.command(t, "01-crd-only", []string{"KUBECONFIG=" + kubeconfig}, "make", append(answer.args, "samples", "KUBECTL=echo KUBECONFIG=$$KUBECONFIG")...)
			command.Stdin = strings.NewReader(answer.input)
			out, err := command.CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), name+string(out))
			g.Expect(string(out)).To(ContainSubstring("\nKUBECONFIG="+c.root+"/.workshop/current-"), name)
		}
	})
}

// killedPlay kills the player at different points. Each time, nothing may keep running, and the next play must work.
func (c checkout) killedPlay(t *testing.T) {
	settings := []string{"KUBECONFIG=" + foreignCluster(t), "WORKSHOP_CLUSTER=current", "WORKSHOP_YES=1"}
	const (
		daemon   = "$ setsid sleep 1000 & echo $! >>$PIDS\n"
		forever  = "$ echo $$ >>$PIDS; echo ready >>$PIDS; sleep 1000\n"
		stubborn = "$ trap '' INT TERM; echo $$ >>$PIDS; echo up; while :; do sleep 0.1; done\n"
	)
	chapters := map[string]string{
		"during a command":           "```console timeout=5m\n" + daemon + forever + "```\n",
		"with an operator":           "```console background=op ready=up\n" + stubborn + "```\n```console timeout=5m\n" + daemon + forever + "```\n",
		"while an operator starts":   "```console background=op ready=never timeout=5m\n$ echo $$ >>$PIDS; echo ready >>$PIDS; sleep 1000\n```\n",
		"while it cleans up":         "```console\n" + daemon + "$ false\n```\n```console cleanup timeout=5m\n" + forever + "```\n",
		"while it stops an operator": "```console background=op ready=up\n$ trap 'echo ready >>$PIDS' INT; trap '' TERM; echo $$ >>$PIDS; echo up; while :; do sleep 0.1; done\n```\n```console stop=op\n```\n",
	}
	ends := map[string]func(g Gomega, player *os.Process){
		"by kill -9": func(g Gomega, player *os.Process) { g.Expect(player.Kill()).To(Succeed()) },
		"by a second Ctrl-C": func(g Gomega, player *os.Process) {
			g.Expect(player.Signal(os.Interrupt)).To(Succeed())
			g.Eventually(func() error { return player.Signal(os.Interrupt) }).WithTimeout(time.Minute).ShouldNot(Succeed())
		},
	}
	for name, text := range chapters {
		for how, end := range ends {
			t.Run(name+", "+how, func(t *testing.T) {
				g := NewWithT(t)
				pids := filepath.Join(t.TempDir(), "pids")
				path := filepath.Join(t.TempDir(), "killed.md")
				g.Expect(os.WriteFile(path, []byte("# Killed\n\n"+text), 0o644)).To(Succeed())
				player := c.command(t, ".", slices.Concat(settings, []string{"PIDS=" + pids}), "bin/workshop", "play", path)
				g.Expect(player.Start()).To(Succeed())
				exited := make(chan error, 1)
				go func() { exited <- player.Wait() }()
				g.Eventually(func() string { return read(pids) }).WithTimeout(time.Minute).Should(ContainSubstring("ready"))
				end(g, player.Process)
				g.Eventually(exited).WithTimeout(time.Minute).Should(Receive())
				for pid := range strings.FieldsSeq(read(pids)) {
					if number, err := strconv.Atoi(pid); err == nil {
						g.Eventually(lives).WithArguments(number).WithTimeout(time.Minute).Should(BeFalse(), pid)
					}
				}
				next := filepath.Join(t.TempDir(), "next.md")
				g.Expect(os.WriteFile(next, []byte("# Next\n\n```console\n$ echo played\nplayed\n```\n"), 0o644)).To(Succeed())
				out, status := c.run(t, ".", settings, "bin/workshop", "play", next)
				g.Expect(status).To(BeZero(), out)
			})
		}
	}
}

func (c checkout) onePlay(t *testing.T) {
	g := NewWithT(t)
	settings := []string{"KUBECONFIG=" + foreignCluster(t), "WORKSHOP_CLUSTER=current", "WORKSHOP_YES=1"}
	path := filepath.Join(t.TempDir(), "long.md")
	g.Expect(os.WriteFile(path, []byte("# Long\n\n```console\n$ echo under way; sleep 1000\n```\n"), 0o644)).To(Succeed())
	first := c.command(t, ".", settings, "bin/workshop", "play", path)
	shown, err := first.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.Start()).To(Succeed())
	lines := bufio.NewScanner(shown)
	for lines.Scan() && lines.Text() != "under way" {
	}
	out, status := c.run(t, ".", settings, "bin/workshop", "play", path)
	g.Expect(status).NotTo(BeZero())
	g.Expect(out).To(ContainSubstring("a chapter is already being played on this cluster"))
	g.Expect(first.Process.Signal(os.Interrupt)).To(Succeed())
	for lines.Scan() {
	}
	_ = first.Wait()
}

func read(path string) string {
	content, _ := os.ReadFile(path)
	return string(content)
}

// lives reports whether a process is running. A zombie is not.
func lives(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

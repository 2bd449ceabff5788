package procgroup_test

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/procgroup"
)

// long is a time limit that no test reaches.
const long = time.Minute

// start runs a script in a group of its own. Once the script has printed a line, start returns the group and the rest
// of the output.
func start(t *testing.T, script string) (int, io.Reader) {
	t.Helper()
	g := NewWithT(t)
	command := exec.Command("sh", "-c", script)
	procgroup.Isolate(command)
	out, err := command.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(command.Start()).To(Succeed())
	t.Cleanup(func() {
		procgroup.End(command.Process.Pid)
		_ = command.Wait()
	})
	lines := bufio.NewReader(out)
	_, err = lines.ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	return command.Process.Pid, lines
}

func TestEnd(t *testing.T) {
	interrupt := procgroup.Step{Signal: 2, Wait: long}
	cases := map[string]struct {
		script string
		steps  []procgroup.Step
		want   bool
		says   string
	}{
		"a program that obeys":          {"trap 'echo obeyed; exit' INT; echo up; while :; do sleep 0.01; done", []procgroup.Step{interrupt}, true, "obeyed\n"},
		"a program with children":       {"sleep 1000 & sleep 1000 & echo up; wait", []procgroup.Step{{Signal: 15, Wait: long}}, true, ""},
		"a second signal":               {"trap '' INT; trap 'echo term; exit' TERM; echo up; while :; do sleep 0.01; done", []procgroup.Step{{Signal: 2}, {Signal: 15, Wait: long}}, true, "term\n"},
		"a program that ignores both":   {"trap '' INT TERM; echo up; while :; do sleep 0.01; done", []procgroup.Step{{Signal: 2}, {Signal: 15}}, false, ""},
		"no steps, only the kill":       {"sleep 1000 & echo up; wait", nil, false, ""},
		"a program that ends by itself": {"echo up; read -r _; exit", []procgroup.Step{{Wait: long}}, true, ""},
		"a child that keeps running":    {"sleep 1000 >/dev/null & echo up; exit", []procgroup.Step{{Wait: 0}}, false, ""},
		"a child whose parent is gone":  {"sleep 1000 >/dev/null & echo up; exit", []procgroup.Step{{Signal: 15, Wait: long}}, true, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			group, out := start(t, c.script)
			g.Expect(procgroup.End(group, c.steps...)).To(Equal(c.want))
			g.Expect(procgroup.Lives(group)).To(BeFalse())
			rest, err := io.ReadAll(out)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(rest)).To(Equal(c.says))
			g.Expect(procgroup.End(group, interrupt)).To(BeTrue(), "there is nothing left to end")
		})
	}
}

func TestRun(t *testing.T) {
	cases := map[string]struct {
		script string
		// interrupted means that the test ends the context when the script prints "up".
		interrupted bool
		grace       time.Duration
		says        string
	}{
		"a program that succeeds leaves no child":          {"sleep 1000 >/dev/null & echo up", false, long, ""},
		"on Ctrl-C, a program gets SIGINT and time to end": {"trap 'echo ended; exit' INT; echo up; while :; do sleep 0.01; done", true, long, "ended\n"},
		"after the grace period, a whole group is killed":  {"trap '' INT; sleep 1000 & echo up; while :; do sleep 0.01; done", true, time.Millisecond, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			ctx, interrupt := context.WithTimeout(t.Context(), long)
			defer interrupt()
			command := exec.CommandContext(ctx, "sh", "-c", c.script)
			reader, writer := io.Pipe()
			command.Stdout = writer
			rest := make(chan string, 1)
			go func() {
				lines := bufio.NewReader(reader)
				_, _ = lines.ReadString('\n')
				if c.interrupted {
					interrupt()
				}
				text, _ := io.ReadAll(lines)
				rest <- string(text)
			}()
			err := procgroup.Run(command, c.grace)
			g.Expect(err == nil).To(Equal(!c.interrupted), "%v", err)
			g.Expect(procgroup.Lives(command.Process.Pid)).To(BeFalse())
			g.Expect(writer.Close()).To(Succeed())
			g.Eventually(rest).Should(Receive(Equal(c.says)))
		})
	}
	t.Run("a program that can't be started", func(t *testing.T) {
		g := NewWithT(t)
		err := procgroup.Run(exec.CommandContext(t.Context(), "/nowhere/program"), long)
		g.Expect(err).To(MatchError(ContainSubstring("no such file")))
	})
}

func TestAGroupOfDeadProcessesDoesNotLive(t *testing.T) {
	g := NewWithT(t)
	command := exec.Command("sleep", "1000")
	procgroup.Isolate(command)
	g.Expect(command.Start()).To(Succeed())
	g.Expect(procgroup.Lives(command.Process.Pid)).To(BeTrue())
	g.Expect(command.Process.Kill()).To(Succeed())
	// The zombie stays in the process table until the Wait below.
	g.Eventually(procgroup.Lives).WithArguments(command.Process.Pid).WithTimeout(5 * time.Second).Should(BeFalse())
	g.Expect(command.Wait()).To(MatchError(ContainSubstring("killed")))
}

func TestWatchdog(t *testing.T) {
	g := NewWithT(t)
	script := `trap '' HUP INT TERM; read -r word; echo "$word"; cat >/dev/null; echo acts`
	watchdog := exec.CommandContext(t.Context(), "sh", "-c", script)
	out, err := watchdog.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	leash, err := procgroup.Watchdog(watchdog)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(syscall.Getpgid(watchdog.Process.Pid)).To(Equal(watchdog.Process.Pid), "no signal from the terminal may reach the watchdog")

	_, err = io.WriteString(leash, "told\n")
	g.Expect(err).NotTo(HaveOccurred())
	said := make([]byte, len("told\n"))
	_, err = io.ReadFull(out, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(said)).To(Equal("told\n"))
	g.Expect(procgroup.Lives(watchdog.Process.Pid)).To(BeTrue(), "the watchdog must wait until the leash is closed")
	g.Expect(leash.Close()).To(Succeed())
	g.Expect(io.ReadAll(out)).To(BeEquivalentTo("acts\n"))
	g.Expect(watchdog.Wait()).To(Succeed())
}

package leftover

import (
	"bufio"
	"context"
	"errors"
	"fmt"
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
)

// role is the environment variable that makes the test binary run as a player or as a watchdog.
const role = "LEFTOVER_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "watchdog":
		_ = Watch(context.Background(), os.Stdin, os.Args[len(os.Args)-1])
	case "player":
		player()
	default:
		os.Exit(m.Run())
	}
}

// player begins a play, and runs the shell script in the process's second argument until the script ends.
func player() {
	play, err := Begin(context.Background(), os.Args[1], "demo", strings.Fields(os.Args[3])...)
	if err != nil {
		fmt.Println("failed:", err)
		return
	}
	command := exec.Command("sh", "-c", os.Args[2])
	command.Env = append(os.Environ(), play.Environment(), role+"=")
	command.Stdout = os.Stdout
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Run(); err != nil {
		fmt.Println("failed:", err)
	}
}

// startPlayer starts a player, and returns it with the process ID that its program prints.
func startPlayer(t *testing.T, g Gomega, state, program string, watchdog string) (*exec.Cmd, int) {
	t.Helper()
	command := exec.Command(os.Args[0], state, program, watchdog)
	command.Env = append(os.Environ(), role+"=player")
	out, err := command.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(command.Start()).To(Succeed())
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	g.Expect(err).NotTo(HaveOccurred(), line)
	return command, pid
}

func runs(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// watchdog is the command that runs the test binary as a watchdog. noWatchdog exits immediately, like a watchdog that
// was killed.
func watchdog() string { return "env " + role + "=watchdog " + os.Args[0] }

const noWatchdog = "true"

func TestProgramsOfAKilledPlayerAreEnded(t *testing.T) {
	programs := map[string]string{
		"a program":                         "echo $$; exec sleep 1000",
		"a program that ignores signals":    `trap "" TERM INT HUP; echo $$; while :; do sleep 0.1; done`,
		"a daemon in a session of its own":  "setsid sleep 1000 & echo $!; wait",
		"a child whose parent exited first": "sh -c 'sleep 1000 & echo $!' ; sleep 1000",
	}
	for name, program := range programs {
		t.Run(name+" is ended by the watchdog", func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			player, pid := startPlayer(t, g, t.TempDir(), program, watchdog())
			g.Expect(runs(pid)).To(BeTrue())
			g.Expect(player.Process.Kill()).To(Succeed())
			g.Eventually(runs).WithArguments(pid).WithTimeout(20 * time.Second).Should(BeFalse())
		})
		t.Run(name+" is ended by the next command", func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			state := t.TempDir()
			player, pid := startPlayer(t, g, state, program, noWatchdog)
			g.Expect(Sweep(t.Context(), state)).To(Succeed())
			g.Expect(runs(pid)).To(BeTrue(), "the play is still in progress")
			g.Expect(player.Process.Kill()).To(Succeed())
			_ = player.Wait()
			g.Expect(Sweep(t.Context(), state)).To(Succeed())
			// Sweep has killed the program, but on a busy machine, a process may exist for a while after it has lost its
			// environment.
			g.Eventually(runs).WithArguments(pid).WithTimeout(time.Minute).Should(BeFalse())
		})
	}
}

func TestOnlyOnePlayUsesACluster(t *testing.T) {
	g := NewWithT(t)
	state := t.TempDir()
	first, err := Begin(t.Context(), state, "demo", noWatchdog)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = Begin(t.Context(), state, "demo", noWatchdog)
	g.Expect(err).To(MatchError("a chapter is already being played on this cluster: wait until it ends, or choose another cluster, for example with NAME="))
	other, err := Begin(t.Context(), state, "other", noWatchdog)
	g.Expect(err).NotTo(HaveOccurred(), "another cluster must be free")
	g.Expect(other.End(t.Context())).To(Succeed())
	g.Expect(first.End(t.Context())).To(Succeed())
	again, err := Begin(t.Context(), state, "demo", noWatchdog)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.End(t.Context())).To(Succeed())
}

func TestTheEndOfAPlayEndsItsPrograms(t *testing.T) {
	g := NewWithT(t)
	play, err := Begin(t.Context(), t.TempDir(), "demo", noWatchdog)
	g.Expect(err).NotTo(HaveOccurred())
	daemon := exec.Command("sleep", "1000")
	daemon.Env = append(os.Environ(), play.Environment())
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	g.Expect(daemon.Start()).To(Succeed())
	t.Cleanup(func() { _ = daemon.Process.Kill() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(play.End(ctx)).To(Succeed(), "the programs must be ended even after Ctrl-C")
	g.Expect(daemon.Wait()).NotTo(Succeed())
}

func TestTheNextPlayEndsProgramsOfTheLast(t *testing.T) {
	g := NewWithT(t)
	state := t.TempDir()
	player, pid := startPlayer(t, g, state, "echo $$; exec sleep 1000", noWatchdog)
	g.Expect(player.Process.Kill()).To(Succeed())
	_ = player.Wait()
	play, err := Begin(t.Context(), state, "demo", noWatchdog)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(runs(pid)).To(BeFalse())
	g.Expect(play.End(t.Context())).To(Succeed())
}

func TestTheWatchdogWaitsForTheEndOfThePlayer(t *testing.T) {
	g := NewWithT(t)
	leash, player := io.Pipe()
	watched := make(chan error, 1)
	go func() { watched <- Watch(t.Context(), leash, "nothing-has-this-mark") }()
	g.Consistently(watched, "100ms").ShouldNot(Receive())
	g.Expect(player.Close()).To(Succeed())
	g.Eventually(watched).Should(Receive(BeNil()))
}

package play

import (
	"bytes"
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

	"example.com/operator-workshop/internal/chapter"
)

// sleeper returns a command that starts a process, writes the process's ID to the file, prints "there", and waits for
// the process. If nothing ends the process, it outlives the test.
func sleeper(file string) string {
	return "sh -c 'sleep 1000 & echo $! >" + file + ".new; mv " + file + ".new " + file + "; echo there; wait'"
}

// process returns the process ID that a command wrote to the file in the player's directory, or 0 if there is none yet.
func (p *Player) process(file string) int {
	text, err := os.ReadFile(filepath.Join(p.Dir, file))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// expectGone expects that the process whose ID is in the file has run and is gone.
func (p *Player) expectGone(g Gomega, file string) {
	pid := p.process(file)
	g.Expect(pid).NotTo(BeZero())
	g.Eventually(func() bool { return runs(pid) }, "5s", "5ms").Should(BeFalse())
}

// runs reports whether a process is running. Without Linux's /proc, it takes a zombie for a running process.
func runs(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// playUntil plays the text, ends the play's context as soon as the file contains a process ID, and returns the play's
// error.
func (p *Player) playUntil(g Gomega, text, file string) error {
	parsed := parse(g, text)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	result := make(chan error, 1)
	go func() {
		err := p.Play(ctx, parsed)
		result <- err
	}()
	g.Eventually(func() int { return p.process(file) }, "10s", "5ms").ShouldNot(BeZero())
	cancel()
	var err error
	g.Eventually(result, "20s", "5ms").Should(Receive(&err))
	return err
}

func TestATimeLimitEndsACommandAndItsChildren(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	player := testPlayer(t)
	err := player.Play(t.Context(), parse(g, consoleFence(" timeout=1s", "$ "+sleeper("pid"))))
	g.Expect(err).To(MatchError("c.md:2: not finished after 1s; to give it more time, write timeout=DURATION after the word console in the page\n    $ " + sleeper("pid") + "\noutput so far:\n    there"))
	player.expectGone(g, "pid")
}

func TestACommandThatIgnoresInterruptsIsKilled(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	player := testPlayer(t)
	player.grace = gracePeriods{interrupt: 10 * time.Millisecond, terminate: 10 * time.Millisecond}
	err := player.playUntil(g, consoleFence("", `$ trap "" INT TERM; `+sleeper("pid")), "pid")
	g.Expect(err).To(MatchError(context.Canceled))
	player.expectGone(g, "pid")
}

func TestCtrlCEndsTheCommandCleansUpAndEndsTheRest(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	player := testPlayer(t)
	text := consoleFence("", "$ "+sleeper("left")+" >out & until test -s left; do :; done") + // lines 1 to 3
		consoleFence(` background=op ready=there`, "$ "+sleeper("background")) +
		consoleFence("", "$ "+sleeper("command"), "$ touch never") +
		consoleFence(" cleanup", "$ kill -0 $(cat background) && touch cleaned", "never compared") +
		consoleFence(" cleanup cluster=kind", "$ touch never")
	err := player.playUntil(g, text, "command")
	g.Expect(err).To(MatchError("c.md:8: interrupted: context canceled\n    $ " + sleeper("command")))
	g.Expect(errors.Is(err, context.Canceled)).To(BeTrue())
	for _, file := range []string{"left", "background", "command"} {
		player.expectGone(g, file)
	}
	g.Expect(filepath.Join(player.Dir, "cleaned")).To(BeAnExistingFile())
	g.Expect(filepath.Join(player.Dir, "never")).NotTo(BeAnExistingFile())
}

func TestCleanupRunsAfterAFailure(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	player := testPlayer(t)
	text := consoleFence(" cleanup", "$ echo done >>log") + consoleFence("", "$ echo a >a; false", "$ touch never") +
		consoleFence(" cleanup", "$ false", "$ echo again >>log") + consoleFence(" cleanup timeout=1ms", "$ sleep 1000")
	err := player.Play(t.Context(), parse(g, text))
	g.Expect(err).To(MatchError("c.md:5: exit status 1, want 0\n    $ echo a >a; false\noutput: nothing\n" +
		"c.md:9: cleanup ended with exit status 1\nc.md:13: cleanup was not finished: time limit"))
	log, err := os.ReadFile(filepath.Join(player.Dir, "log"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(log)).To(Equal("done\nagain\n"))
	g.Expect(filepath.Join(player.Dir, "never")).NotTo(BeAnExistingFile())
}

func TestCleanupIsBounded(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	player := testPlayer(t)
	player.cleanupTimeout = 10 * time.Millisecond
	err := player.Play(t.Context(), parse(g, consoleFence("", "$ false")+consoleFence(" cleanup", "$ sleep 1000")))
	g.Expect(err).To(MatchError(HaveSuffix("c.md:5: cleanup was not finished: context deadline exceeded")))
}

func TestAChildThatKeepsTheOutputOpenDoesNotBlockThePlayer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	player := testPlayer(t)
	err := player.Play(t.Context(), parse(g, consoleFence("", "$ sleep 1000 & echo $! >pid; echo a", "a", "$ kill -0 $(cat pid)")))
	g.Expect(err).NotTo(HaveOccurred())
	player.expectGone(g, "pid")
}

func TestABackgroundProcessRunsUntilItIsStopped(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	player := testPlayer(t)
	player.grace.interrupt = 10 * time.Second
	text := consoleFence("", "$ export A=1") +
		consoleFence(` background=op ready="is up"`, `$ echo $$ >pid; trap 'echo $A >ended; exit' INT; printf 'is \033[1mup\033[0m'; while :; do sleep 0.01; done`) +
		consoleFence("", "$ kill -0 $(cat pid)") +
		consoleFence(" stop=op", "$ kill -0 $(cat pid) 2>&-", "? 1", "$ cat ended", "1")
	err := player.Play(t.Context(), parse(g, text))
	g.Expect(err).NotTo(HaveOccurred())
}

func TestABackgroundProcessThatIsNeverReadyIsReported(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	player := testPlayer(t)
	err := player.Play(t.Context(), parse(g, consoleFence(` background=op ready=up timeout=1s`, "$ "+sleeper("pid"))))
	g.Expect(err).To(MatchError("c.md:2: background process op has not printed \"up\" after 1s\n    $ " + sleeper("pid") + "\noutput so far:\n    there"))
	player.expectGone(g, "pid")
}

func TestABackgroundProcessThatDiesBeforeItIsReadyIsReported(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	command := "i=0; while test $i -lt 22; do i=$((i+1)); echo $i; done; exit 3"
	err := testPlayer(t).Play(t.Context(), parse(g, consoleFence(` background=op ready=up`, "$ "+command)))
	g.Expect(err).To(MatchError(HavePrefix("c.md:2: background process op ended by itself with exit status 3\n    $ " + command + "\nits last output:\n    3\n")))
	g.Expect(err).To(MatchError(HaveSuffix("\n    21\n    22")))
}

func TestABackgroundProcessThatDiesLater(t *testing.T) {
	command := `touch pid; echo up; while test -e pid; do sleep 0.01; done; echo bye; exit 3`
	died := "c.md:2: background process op ended by itself with exit status 3\n    $ " + command + "\nits last output:\n    up\n    bye"
	for name, test := range map[string]struct{ next, want string }{
		"is noticed before a command":      {consoleFence("", "$ touch never"), died},
		"is noticed before a stop":         {consoleFence(" stop=op"), died},
		"is noticed at the end":            {"", died},
		"is reported with another failure": {"failure", "c.md:5: exit status 1, want 0\n    $ false\noutput: nothing\n" + died},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			player := testPlayer(t)
			parsed := parse(g, consoleFence(` background=op ready=up`, "$ "+command)+test.next)
			play, err := player.begin(parsed)
			g.Expect(err).NotTo(HaveOccurred())
			start := parsed.Steps[0].Blocks[0]
			g.Expect(play.block(t.Context(), &start)).To(Succeed())
			parsed.Steps[0].Blocks = parsed.Steps[0].Blocks[1:]
			g.Expect(os.Remove(filepath.Join(player.Dir, "pid"))).To(Succeed())
			g.Eventually(play.backgrounds[0].process.drained, "10s", "5ms").Should(BeClosed())
			if test.next == "failure" {
				failing := &chapter.Block{Commands: []chapter.Command{{Line: 5, Text: "false"}}}
				g.Expect(play.run(t.Context(), failing, &failing.Commands[0])).To(MatchError(test.want))
			} else {
				g.Expect(play.steps(t.Context())).To(MatchError(test.want))
			}
			g.Expect(play.end()).To(Succeed())
			g.Expect(filepath.Join(player.Dir, "never")).NotTo(BeAnExistingFile())
		})
	}
}

func TestNothingIsPlayedAfterTheContextHasEnded(t *testing.T) {
	g := NewWithT(t)
	player := testPlayer(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := player.Play(ctx, parse(g, consoleFence("", "$ touch never")))
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(filepath.Join(player.Dir, "never")).NotTo(BeAnExistingFile())
	g.Expect(player.Out.(*bytes.Buffer).String()).NotTo(ContainSubstring("played"))
}

func TestStopEndsAProcessThatObeys(t *testing.T) {
	g := NewWithT(t)
	p, err := startProcess(exec.Command("sleep", "1000"), newCapture(10, io.Discard))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.groupLives()).To(BeTrue())
	p.stop(gracePeriods{interrupt: 10 * time.Second})
	g.Expect(p.groupLives()).To(BeFalse())
	g.Expect(p.status()).To(Equal(130))
}

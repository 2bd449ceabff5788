package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/procgroup"
	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/traffic"
)

// tail returns the last ten of the hundred lines that the role "fails" prints. Run's error must show only these.
func tail() string {
	var lines strings.Builder
	for i := 90; i < 100; i++ {
		fmt.Fprintf(&lines, "\nline %d", i)
	}
	return lines.String()
}

func TestRun(t *testing.T) {
	tests := map[string]struct {
		grace time.Duration
		// end is the cause of the context's cancellation. It is nil for an operator that exits on its own.
		end error
		// want is the error. It is empty if there must be none.
		want string
		// later is how many requests the operator makes after it is told to stop.
		later int
	}{
		"obeys":                        {end: context.Canceled, later: 1},
		"handles no signal":            {end: context.Canceled},
		"exits like a virtual machine": {end: context.Canceled},
		"fails late": {
			end: context.Canceled, want: "the operator exited with an error after SIGTERM (exit status 2); its last lines:\nlast words",
		},
		"ignores SIGTERM": {
			grace: time.Millisecond, end: context.Canceled,
			want: "the operator, or a program that it started, was still running 1ms after SIGTERM and was killed; it printed nothing",
		},
		"obeys, but is killed": {end: traffic.ErrKilled, want: traffic.ErrKilled.Error()},
		"fails":                {want: "the operator exited before it was told to stop (exit status 3); its last lines:" + tail()},
		"gives up":             {want: "the operator exited before it was told to stop (exit status 0); it printed nothing"},
		"leaves a child":       {want: "the operator exited before it was told to stop (exit status 1); it printed nothing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			server, reports := listener(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			role, _, _ := strings.Cut(name, ",")
			command := playing(role)
			command.Grace = test.grace
			result := make(chan error, 1)
			go func() {
				result <- command.Run(ctx, restConfig(server), operatortest.RunOptions{Namespace: "here"})
			}()
			var began reported
			g.Eventually(reports).WithTimeout(long).Should(Receive(&began))
			g.Expect(began.path).To(Equal("/started"))
			if test.end != nil {
				g.Expect(os.Stat(began.kubeconfig)).To(HaveField("Mode()", os.FileMode(0o600)))
				cancel(test.end)
			}

			var err error
			g.Eventually(result).WithTimeout(long).Should(Receive(&err))
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(test.want))
			}
			g.Expect(reports).To(HaveLen(test.later))
			g.Expect(procgroup.Lives(began.pid)).To(BeFalse(), "every process must have ended")
			g.Expect(filepath.Dir(began.kubeconfig)).NotTo(BeADirectory())
		})
	}
}

func TestAKillDoesNotWaitForTheGrace(t *testing.T) {
	g := NewWithT(t)
	server, reports := listener(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan error, 1)
	command := playing("ignores SIGTERM")
	command.Grace = time.Hour
	go func() { result <- command.Run(ctx, restConfig(server), operatortest.RunOptions{Namespace: "here"}) }()
	g.Eventually(reports).WithTimeout(long).Should(Receive())
	cancel(fmt.Errorf("the third write: %w", traffic.ErrKilled))
	g.Eventually(result).WithTimeout(long).Should(Receive(MatchError(traffic.ErrKilled)))
}

func TestLogs(t *testing.T) {
	g := NewWithT(t)
	server, _ := listener(t)
	command := playing("fails")
	command.Logs = filepath.Join(t.TempDir(), "logs")
	for range 2 {
		err := command.Run(t.Context(), restConfig(server), operatortest.RunOptions{Namespace: "here"})
		g.Expect(err).To(MatchError(ContainSubstring("line 99")))
	}
	logs, err := filepath.Glob(filepath.Join(command.Logs, "here-*.log"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(logs).To(HaveLen(2), "there must be a file for each start")
	content, err := os.ReadFile(logs[1])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(And(HavePrefix("line 0\n"), HaveSuffix("line 99\n")))
}

func TestTheKitCanReadTheLog(t *testing.T) {
	g := NewWithT(t)
	server, _ := listener(t)
	var read *os.File
	group := 0
	options := operatortest.RunOptions{Namespace: "here", ProcessGroup: func(id int) { group = id }, LogFile: func(path string) (err error) {
		read, err = os.Open(path)
		return err
	}}
	g.Expect(playing("fails").Run(t.Context(), restConfig(server), options)).NotTo(Succeed())
	defer read.Close()
	content, err := io.ReadAll(read)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(HaveSuffix("line 99\n"), "the log must be readable even though the file has been removed")
	g.Expect(read.Name()).NotTo(BeAnExistingFile())
	g.Expect(group).NotTo(BeZero())
}

func TestAKilledTestProcessLeavesNoOperator(t *testing.T) {
	g := NewWithT(t)
	server, reports := listener(t)
	tests := exec.Command(os.Args[0])
	tests.Env = append(os.Environ(), roleVariable+"=tests", upstreamVariable+"="+server.URL)
	g.Expect(tests.Start()).To(Succeed())
	defer func() { _ = tests.Wait() }()
	var began reported
	g.Eventually(reports).WithTimeout(long).Should(Receive(&began))
	defer procgroup.End(began.pid)
	g.Expect(procgroup.Lives(began.pid)).To(BeTrue())

	g.Expect(tests.Process.Kill()).To(Succeed())
	g.Eventually(procgroup.Lives).WithArguments(began.pid).WithTimeout(long).Should(BeFalse())
	g.Eventually(filepath.Dir(began.kubeconfig)).WithTimeout(long).ShouldNot(BeADirectory())
}

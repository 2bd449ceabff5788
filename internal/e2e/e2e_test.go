package e2e

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// notes records the order of calls.
type notes struct{ done []string }

func (n *notes) step(name string, err error) Step {
	return Step{Name: name, Do: func(context.Context) error { return n.note(name, err) }}
}

func (n *notes) note(name string, err error) error {
	n.done = append(n.done, name)
	return err
}

func (n *notes) test(out *bytes.Buffer, begin, steps []Step) Test {
	return Test{
		Begin: begin, Steps: steps, Out: out,
		Logs: func(ctx context.Context) error { return n.note("logs", ctx.Err()) },
		Down: func(ctx context.Context) error { return n.note("down", ctx.Err()) },
	}
}

func TestRunCallsStepsLogsAndDownInOrder(t *testing.T) {
	broken := errors.New("broken")
	cases := map[string]struct {
		failing string
		want    []string
		message string
	}{
		"all steps pass, and the cluster is removed": {want: []string{"cluster", "specs", "chapter", "down"}},
		"without a cluster there is nothing to remove": {
			failing: "cluster", want: []string{"cluster"}, message: "cluster failed after 0 s: broken"},
		"after a failure, logs are collected and the cluster is removed": {
			failing: "specs", want: []string{"cluster", "specs", "logs", "down"}, message: "specs failed after 0 s: broken"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n := &notes{}
			step := func(name string) Step {
				if name == c.failing {
					return n.step(name, broken)
				}
				return n.step(name, nil)
			}
			out := &bytes.Buffer{}
			err := n.test(out, []Step{step("cluster")}, []Step{step("specs"), step("chapter")}).Run(t.Context())
			g.Expect(n.done).To(Equal(c.want))
			if c.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(out.String()).To(ContainSubstring("Everything passed"))
				return
			}
			g.Expect(err).To(MatchError(c.message))
			g.Expect(out.String()).NotTo(ContainSubstring("passed"))
		})
	}
}

func TestRunRemovesTheClusterAfterCtrlC(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	n := &notes{}
	interrupt := Step{Name: "specs", Do: func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return n.note("specs", ctx.Err())
	}}
	err := n.test(&bytes.Buffer{}, nil, []Step{interrupt, n.step("chapter", nil)}).Run(ctx)
	g.Expect(err).To(MatchError("interrupted during specs"), "Down must get a context that has not ended")
	g.Expect(n.done).To(Equal([]string{"specs", "down"}), "after Ctrl-C, no logs may be collected")
}

func TestCommandEndsWithItsChildren(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &signal{seen: cancel, at: "started"}
	command := Command{Args: []string{"sh", "-c", `trap 'echo ended' INT; sleep 600 & echo started; wait; wait`}, Out: out, Grace: 2 * time.Second}
	began := time.Now()
	g.Expect(command.Run(ctx)).NotTo(Succeed())
	g.Expect(out.text.String()).To(ContainSubstring("ended"), "the program must get SIGINT")
	g.Expect(time.Since(began)).To(BeNumerically("<", 30*time.Second), "a program that does not end must be killed")
}

// signal is a writer that calls seen once text contains at, and again on each further write.
type signal struct {
	text strings.Builder
	at   string
	seen func()
}

func (s *signal) Write(text []byte) (int, error) {
	s.text.Write(text)
	if strings.Contains(s.text.String(), s.at) {
		s.seen()
	}
	return len(text), nil
}

func TestEnvironmentOmitsVariablesForMakeGoAndTheShell(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("MAKEFLAGS", "IMG=mine")
	t.Setenv("CLUSTER", "embedded")
	t.Setenv("WORKSHOP_OWN", "1")
	t.Setenv("GOFLAGS", "-mod=vendor")
	t.Setenv("GOOS", "windows")
	t.Setenv("CDPATH", "/elsewhere")
	t.Setenv("OFFLINE", "1")
	environment := Environment("IMG=theirs")
	g.Expect(environment).To(ContainElements("OFFLINE=1", "IMG=theirs"))
	g.Expect(environment).NotTo(ContainElement(MatchRegexp("^(MAKEFLAGS|CLUSTER|WORKSHOP_OWN|GOFLAGS|GOOS|CDPATH)=")))
}

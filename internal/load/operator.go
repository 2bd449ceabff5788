package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"example.com/operator-workshop/internal/procgroup"
)

const (
	// resyncPeriod is how often the controller's informers deliver all objects again.
	resyncPeriod = 10 * time.Second
	// startTimeout bounds how long the controller may take to start watching its resources.
	startTimeout = 30 * time.Second
	// stopTimeout bounds how long the controller may take to exit after SIGTERM.
	stopTimeout = 30 * time.Second
	// pollInterval is the time between two checks during a wait. Each check reads a local file or the clock.
	pollInterval = 50 * time.Millisecond
	// shownLines is how many lines of the controller's log an error shows.
	shownLines = 5
)

// operator is the controller's process.
type operator struct {
	command *exec.Cmd
	log     string
	// peak is the process's peak memory, in bytes. It is known after stop.
	peak int64
	// ended is closed when the process has ended.
	ended chan struct{}
}

// startOperator starts the controller, and writes the controller's log to a file. Call stop afterwards.
func startOperator(program, kubeconfig, log string, args []string) (*operator, error) {
	output, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("create the controller's log: %w", err)
	}
	defer output.Close() // the process holds its own descriptor
	flags := []string{
		"--kubeconfig=" + kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--resync-period=" + resyncPeriod.String(),
	}
	started := &operator{command: exec.Command(program, append(flags, args...)...), log: log, ended: make(chan struct{})}
	started.command.Env = operatorEnvironment(os.Environ())
	started.command.Dir = filepath.Dir(log)
	started.command.Stdout, started.command.Stderr = output, output
	// In a process group of its own, the controller does not receive the terminal's Ctrl-C. stop ends it instead.
	procgroup.Isolate(started.command)
	if err := started.command.Start(); err != nil {
		return nil, fmt.Errorf("start the controller: %w", err)
	}
	go func() {
		defer close(started.ended)
		_ = started.command.Wait() // the controller's log says how it ended
	}()
	return started, nil
}

// operatorEnvironment returns the controller's environment. It leaves out KUBECONFIG, which may name the learner's
// cluster, and switches off webhooks, which package load does not measure.
func operatorEnvironment(environment []string) []string {
	kept := slices.DeleteFunc(slices.Clone(environment), func(setting string) bool {
		return strings.HasPrefix(setting, "KUBECONFIG=")
	})
	return append(kept, "ENABLE_WEBHOOKS=false")
}

// failed returns an error if the process has ended on its own.
func (o *operator) failed() error {
	select {
	case <-o.ended:
		return fmt.Errorf("the controller ended on its own (%s); its last lines:\n%s", o.command.ProcessState, o.lastLines())
	default:
		return nil
	}
}

// lastLines returns the end of the controller's log, for errors.
func (o *operator) lastLines() string {
	content, err := os.ReadFile(o.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-shownLines):], "\n")
}

// wait waits until a condition is true. It fails if the condition returns an error, or if the process or the context
// ends first.
func (o *operator) wait(ctx context.Context, holds func() (bool, error)) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		held, err := holds()
		if held || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.ended:
			return o.failed()
		case <-ticker.C:
		}
	}
}

func (o *operator) processorTime() (time.Duration, error) {
	running, err := process.NewProcess(int32(o.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("find the controller's process: %w", err)
	}
	times, err := running.Times()
	if err != nil {
		return 0, fmt.Errorf("read the controller's processor time: %w", err)
	}
	return time.Duration((times.User + times.System) * float64(time.Second)), nil
}

// stop stops the process with SIGTERM, as the kubelet does. If the process has not ended after stopTimeout, stop kills
// it and returns an error. If the process has already ended, stop does nothing.
func (o *operator) stop() error {
	select {
	case <-o.ended:
		return nil
	default:
	}
	peak, err := peakWhileRunning(o.command.Process.Pid)
	if err != nil {
		err = fmt.Errorf("read the controller's memory: %w", err)
	}
	inTime := procgroup.End(o.command.Process.Pid, procgroup.Step{Signal: syscall.SIGTERM, Wait: stopTimeout})
	<-o.ended
	if !inTime {
		return errors.Join(err, fmt.Errorf("the controller was still running %s after SIGTERM and was killed; its last lines:\n%s", stopTimeout, o.lastLines()))
	}
	o.peak = max(peak, peakAfterEnd(o.command.ProcessState))
	return err
}

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"example.com/operator-workshop/internal/procgroup"
	"example.com/operator-workshop/operatortest/traffic"
)

const (
	// shownLines is the number of lines from the end of the operator's output that an error shows; shownBytes limits their
	// total length.
	shownLines = 10
	shownBytes = 8 << 10
	// terminatedStatus is the exit status with which a shell or a virtual machine reports that SIGTERM ended the program.
	terminatedStatus = 128 + int(syscall.SIGTERM)
)

// running is an operator's process, the leader of a process group.
type running struct {
	command  *exec.Cmd
	log      *os.File
	watchdog *watchdog
	// ended is closed when the process has ended.
	ended chan struct{}
}

func start(command *exec.Cmd, log *os.File, dir string) (*running, error) {
	watchdog, err := startWatchdog(dir)
	if err != nil {
		return nil, err
	}
	procgroup.Isolate(command)
	if err := command.Start(); err != nil {
		watchdog.dismiss()
		return nil, explain(err)
	}
	watchdog.guard(command.Process.Pid)
	started := &running{command: command, log: log, watchdog: watchdog, ended: make(chan struct{})}
	go func() {
		defer close(started.ended)
		_ = command.Wait() // how it ended is in its ProcessState
	}()
	return started, nil
}

// wait returns when no process of the group is left. It ends the group when the context ends, or when the operator itself
// has exited.
func (r *running) wait(ctx context.Context, grace time.Duration) error {
	defer r.watchdog.dismiss()
	var early bool
	select {
	case <-ctx.Done():
	case <-r.ended:
		early = ctx.Err() == nil
	}
	killed := errors.Is(context.Cause(ctx), traffic.ErrKilled)
	var steps []procgroup.Step
	if !killed && !early {
		steps = append(steps, procgroup.Step{Signal: syscall.SIGTERM, Wait: grace})
	}
	inTime := procgroup.End(r.command.Process.Pid, steps...)
	<-r.ended
	switch {
	case killed:
		return traffic.ErrKilled
	case early:
		return fmt.Errorf("the operator exited before it was told to stop (%s); %s", r.command.ProcessState, LastLines(r.log))
	case !inTime:
		return fmt.Errorf("the operator, or a program that it started, was still running %s after SIGTERM and was killed; %s", grace, LastLines(r.log))
	case !r.obeyed():
		return fmt.Errorf("the operator exited with an error after SIGTERM (%s); %s", r.command.ProcessState, LastLines(r.log))
	}
	return nil
}

// obeyed reports whether the process ended as expected after SIGTERM.
func (r *running) obeyed() bool {
	state := r.command.ProcessState
	status, ok := state.Sys().(syscall.WaitStatus)
	return state.Success() || state.ExitCode() == terminatedStatus || ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}

// LastLinesOf is like LastLines, but opens the file with the operator's output.
func LastLinesOf(path string) string {
	log, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer log.Close()
	return LastLines(log)
}

// LastLines returns the last lines of an operator's output, after an introduction, for errors and reports. If there are
// none, or they can't be read, it returns a string that explains this.
func LastLines(log *os.File) string {
	info, err := log.Stat()
	if err != nil {
		return err.Error()
	}
	end := make([]byte, min(info.Size(), shownBytes))
	if _, err := log.ReadAt(end, info.Size()-int64(len(end))); err != nil {
		return err.Error()
	}
	text := strings.TrimSpace(string(end))
	if text == "" {
		return "it printed nothing"
	}
	lines := strings.Split(text, "\n")
	return "its last lines:\n" + strings.Join(lines[max(0, len(lines)-shownLines):], "\n")
}

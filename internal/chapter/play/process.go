package play

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a program in a process group of its own, so that it can be ended with everything it started.
type process struct {
	cmd     *exec.Cmd
	output  *capture
	exited  chan struct{} // closed when the program has ended
	drained chan struct{} // closed when, after that, all it had printed is in output
}

// patience says how long a process group gets to end after each signal.
type patience struct {
	interrupt time.Duration // between SIGINT and SIGTERM
	terminate time.Duration // between SIGTERM and SIGKILL
}

const (
	// afterKill bounds the wait for a killed group.
	afterKill = time.Second
	// lastOutput bounds the reading of what a program has printed, if a child that it left still holds the pipe.
	lastOutput = 200 * time.Millisecond
)

// startProcess starts cmd with no input and with both outputs joined, in order, in output.
func startProcess(cmd *exec.Cmd, output *capture) (*process, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer writer.Close()
	cmd.Stdout, cmd.Stderr = writer, writer
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the shell: %w", err), reader.Close())
	}
	p := &process{cmd: cmd, output: output, exited: make(chan struct{}), drained: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // ProcessState has the exit status
		close(p.exited)
		_ = reader.SetReadDeadline(time.Now().Add(lastOutput))
	}()
	go p.read(reader)
	return p, nil
}

// read copies the program's output until it has ended, and throws away what its children print after that.
// It goes on reading because a child must not block on a full pipe.
func (p *process) read(reader *os.File) {
	defer reader.Close()
	_, _ = io.Copy(p.output, reader)
	<-p.exited
	close(p.drained)
	_ = reader.SetReadDeadline(time.Time{})
	_, _ = io.Copy(io.Discard, reader)
}

// status is the exit status of the program as a shell would give it. It must have ended.
func (p *process) status() int {
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) ended() bool {
	select {
	case <-p.drained:
		return true
	default:
		return false
	}
}

// groupLives tells whether any process of the group still runs.
func (p *process) groupLives() bool {
	group := p.cmd.Process.Pid
	// On macOS, a group of dead processes answers EPERM; on Linux, it counts as one that lives.
	return syscall.Kill(-group, 0) == nil && !allDead(group)
}

// allDead tells whether every process of a group is dead and only not reaped yet. In a container whose first process
// reaps nothing, such processes stay for ever. Without Linux's /proc it can't tell, and says no.
func allDead(group int) bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return false
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has just been reaped
		}
		// proc(5): "pid (name) state ppid pgrp …"; the name may contain anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X" {
			return false
		}
	}
	return true
}

// stop ends the whole group: it asks as Ctrl-C does, then asks again, then kills.
func (p *process) stop(patience patience) {
	for _, try := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{
		{syscall.SIGINT, patience.interrupt},
		{syscall.SIGTERM, patience.terminate},
		{syscall.SIGKILL, afterKill},
	} {
		if !p.groupLives() {
			break
		}
		// An error means that the group is gone, which is what is wanted.
		_ = syscall.Kill(-p.cmd.Process.Pid, try.signal)
		if p.goneWithin(try.wait) {
			break
		}
	}
	<-p.drained
}

func (p *process) goneWithin(limit time.Duration) bool {
	deadline := time.After(limit)
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for p.groupLives() {
		select {
		case <-deadline:
			return false
		case <-poll.C:
		}
	}
	return true
}

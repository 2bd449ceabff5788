package play

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"example.com/operator-workshop/internal/procgroup"
)

// process is a program in a process group of its own, so that it can be stopped with its children in that group.
type process struct {
	cmd     *exec.Cmd
	output  *capture
	exited  chan struct{} // closed when the program has ended
	drained chan struct{} // closed when, after that, output contains everything that it printed
}

// gracePeriods say how long a process group may take to end after SIGINT, and then after SIGTERM.
type gracePeriods struct {
	interrupt time.Duration // between SIGINT and SIGTERM
	terminate time.Duration // between SIGTERM and SIGKILL
}

const (
	// lastOutput limits how long output is captured after the program has ended, in case a child keeps the pipe open.
	lastOutput = 200 * time.Millisecond
)

// startProcess starts cmd without input. Standard output and standard error both go to output, in order.
func startProcess(cmd *exec.Cmd, output *capture) (*process, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer writer.Close()
	cmd.Stdout, cmd.Stderr = writer, writer
	procgroup.Isolate(cmd)
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

// read copies the output until the pipe is closed, or until lastOutput after the program's end. Then it reads and
// discards what the children print, so that they don't block on a full pipe.
func (p *process) read(reader *os.File) {
	defer reader.Close()
	_, _ = io.Copy(p.output, reader)
	<-p.exited
	close(p.drained)
	_ = reader.SetReadDeadline(time.Time{})
	_, _ = io.Copy(io.Discard, reader)
}

// status returns the exit status of the ended program, as a shell would report it.
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

// groupLives reports whether any process of the group is still running.
func (p *process) groupLives() bool { return procgroup.Lives(p.cmd.Process.Pid) }

// stop terminates the whole group with SIGINT, then SIGTERM, then SIGKILL.
func (p *process) stop(grace gracePeriods) {
	procgroup.End(p.cmd.Process.Pid,
		procgroup.Step{Signal: syscall.SIGINT, Wait: grace.interrupt},
		procgroup.Step{Signal: syscall.SIGTERM, Wait: grace.terminate})
	<-p.drained
}

package chapter

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	interrupt time.Duration
	terminate time.Duration
}

// afterKill bounds the wait for a killed group.
const afterKill = time.Second

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
	go p.wait(reader)
	go p.read(reader)
	return p, nil
}

// wait reaps the program. Its exit status is in cmd.ProcessState, which is why the error says nothing more.
func (p *process) wait(reader *os.File) {
	_ = p.cmd.Wait()
	close(p.exited)
	// A child that still holds the pipe must not keep the reader waiting: what is in the pipe by now is all there is.
	_ = reader.SetReadDeadline(time.Now())
}

// read copies the program's output until it has ended, and throws away what its children print after that.
// It goes on reading because a child must not block on a full pipe.
func (p *process) read(reader *os.File) {
	defer reader.Close()
	_, err := io.Copy(p.output, onlyReader{reader})
	<-p.exited
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = reader.SetReadDeadline(time.Time{})
		p.readRemaining(reader)
	}
	close(p.drained)
	_, _ = io.Copy(io.Discard, onlyReader{reader})
}

// onlyReader keeps io.Copy from handing the pipe to the kernel, which would bypass the read deadline.
type onlyReader struct{ io.Reader }

// readRemaining copies what is in the pipe at this moment without waiting for more.
func (p *process) readRemaining(reader *os.File) {
	raw, err := reader.SyscallConn()
	if err != nil {
		return
	}
	chunk := make([]byte, 32*1024)
	_ = raw.Read(func(fd uintptr) bool {
		for {
			n, err := syscall.Read(int(fd), chunk)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if n <= 0 || err != nil {
				return true
			}
			_, _ = p.output.Write(chunk[:n])
		}
	})
}

// status is the exit status of the program as a shell would give it. It must have ended.
func (p *process) status() int {
	if wait, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal())
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
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for p.groupLives() {
		select {
		case <-deadline.C:
			return false
		case <-poll.C:
		}
	}
	return true
}

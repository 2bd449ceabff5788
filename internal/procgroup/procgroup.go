// Package procgroup runs programs in process groups of their own, and measures and ends whole groups. In its
// documentation, "this process" is the process that uses the package, such as the workshop or a test.
//
// A program in this process's group would get the terminal's Ctrl-C together with this process, and the program's
// children might outlive it. If the program has a group of its own, this process can decide when to end it, send it a
// signal that it handles, and also end its children. To the terminal, such a program is a background job, so it can't
// read from the terminal.
//
// A group's ID is the process ID of its leader, which is the program itself.
//
// A program that must not outlive this process, even if this process is killed with SIGKILL, needs a watchdog.
package procgroup

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

const (
	// killLimit bounds the wait for a killed group to end.
	killLimit = time.Second
	// interval is how often to check whether a group has ended.
	interval = 10 * time.Millisecond
)

// Step is a signal to send to a group, and how long the group may then take to end. A zero Signal sends nothing.
type Step struct {
	Signal syscall.Signal
	Wait   time.Duration
}

// Isolate makes a command run in a group of its own. Call it before you start the command.
func Isolate(command *exec.Cmd) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true
}

// Run runs a command made by exec.CommandContext in a group of its own. When the context ends, Run sends the group
// SIGINT, as Ctrl-C does, and kills the command if it is still running after the grace period. Once the command has
// ended, Run kills the rest of the group, so that no process of the group is still running when Run returns.
func Run(command *exec.Cmd, grace time.Duration) error {
	Isolate(command)
	command.Cancel = func() error {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGINT) // an error means that the group has just ended
		return nil
	}
	command.WaitDelay = grace
	err := command.Run()
	if command.Process != nil {
		End(command.Process.Pid)
	}
	return err
}

// Watchdog starts a command that must act when this process ends for any reason. At that moment, the command's standard
// input reaches its end. Until then, the command can read from it what this process writes to the leash. Closing the
// leash makes the command act immediately. Always call the command's Wait.
func Watchdog(command *exec.Cmd) (leash io.WriteCloser, err error) {
	// The command gets a session of its own, so that neither Ctrl-C nor closing the terminal ends it.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	leash, err = command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	return leash, nil
}

// End takes the steps in order until the group has ended, and kills it if it is still running after the last one. It
// reports whether the group ended without being killed.
func End(group int, steps ...Step) bool {
	for _, step := range steps {
		if !Lives(group) {
			return true
		}
		_ = syscall.Kill(-group, step.Signal) // an error means that the group has just ended
		if endsWithin(group, step.Wait) {
			return true
		}
	}
	if !Lives(group) {
		return true
	}
	_ = syscall.Kill(-group, syscall.SIGKILL) // an error means that the group has just ended
	endsWithin(group, killLimit)
	return false
}

// Lives reports whether any process of the group is running.
func Lives(group int) bool {
	// If only zombies are left in the group, kill fails with EPERM on macOS, but succeeds on Linux.
	return syscall.Kill(-group, 0) == nil && !allDead(group)
}

func endsWithin(group int, limit time.Duration) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for Lives(group) {
		select {
		case <-deadline.C:
			return false
		case <-ticker.C:
		}
	}
	return true
}

// allDead reports whether every process of a group is a zombie: dead, but not reaped yet. In a container whose PID 1
// reaps nothing, an orphan that ends stays a zombie until the container stops. Without Linux's /proc, allDead returns
// false.
func allDead(group int) bool {
	living, known := members(group)
	return known && len(living) == 0
}

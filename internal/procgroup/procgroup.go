// Package procgroup runs programs in process groups of their own, and ends a group with all that is in it.
//
// A program that shares the workshop's group gets the terminal's Ctrl-C at the same moment as the workshop does, and
// what it has started may outlive it. In a group of its own, it is ended by the workshop alone: at a point that the
// workshop knows about, by the signal that the program understands, and with its children. Such a program can't read
// from the terminal: it belongs to the background there.
//
// A group has the number of the process that leads it, the program's own.
package procgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// killLimit bounds the wait for a killed group.
	killLimit = time.Second
	// interval is how often a wait looks again.
	interval = 10 * time.Millisecond
)

// Step is a signal for a group, and how long the group may take to end after it. The zero Signal only waits.
type Step struct {
	Signal syscall.Signal
	Wait   time.Duration
}

// Isolate makes a command that has not been started yet run in a group of its own.
func Isolate(command *exec.Cmd) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true
}

// Run runs a command made by exec.CommandContext in a group of its own. When the context is over, the group gets the
// signal of Ctrl-C and the grace to end. When Run returns, nothing of the group is left.
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

// End takes the steps one after the other until the group has ended, and kills it if it never does. It reports whether
// the group ended without being killed.
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
	_ = syscall.Kill(-group, syscall.SIGKILL) // as above
	endsWithin(group, killLimit)
	return false
}

// Lives tells whether any process of the group runs.
func Lives(group int) bool {
	// On macOS, a group of dead processes answers EPERM; on Linux, it counts as one that lives.
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

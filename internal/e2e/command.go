package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Command is a program that a step runs.
type Command struct {
	Dir  string
	Env  []string
	Args []string
	// Grace is how long the program may take to end after Ctrl-C.
	Grace time.Duration
	Out   io.Writer
}

// Run shows the command and runs it. It has a process group of its own, so that Ctrl-C reaches it once, and so
// that nothing of it is left in the end.
func (c Command) Run(ctx context.Context) error {
	fmt.Fprintf(c.Out, "$ %s\n", strings.Join(c.Args, " "))
	command := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	command.Dir, command.Env = c.Dir, c.Env
	command.Stdout, command.Stderr = c.Out, c.Out
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = c.Grace
	err := command.Run()
	if command.Process != nil {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // an error if nothing is left, as it should be
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Args[0], err)
	}
	return nil
}

// others are variables that mean something to make, go or the shell. What a make tells the programs that it starts,
// another make would take as its own; GOOS=windows in a learner's shell would break every command.
var others = []string{
	"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "CLUSTER", "NAME", "IMG",
	"GOFLAGS", "GOOS", "GOARCH", "CDPATH",
}

// Environment is that of this process and more, without variables that other programs would misunderstand.
func Environment(more ...string) []string {
	environment := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(others, name)
	})
	return append(environment, more...)
}

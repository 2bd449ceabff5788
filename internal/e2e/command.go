package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/internal/procgroup"
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

// Run shows the command and runs it in a process group of its own. When it returns, no process of the group is running.
func (c Command) Run(ctx context.Context) error {
	fmt.Fprintf(c.Out, "$ %s\n", strings.Join(c.Args, " "))
	command := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	command.Dir, command.Env = c.Dir, c.Env
	command.Stdout, command.Stderr = c.Out, c.Out
	if err := procgroup.Run(command, c.Grace); err != nil {
		return fmt.Errorf("%s: %w", c.Args[0], err)
	}
	return nil
}

// others lists variables that change what make, go or the shell does. With them, a nested make would use the outer
// make's flags, WORKSHOP_OWN would put the learner's copy in place of the stage, and GOOS=windows would make go compile
// specs that can't run on this machine.
var others = []string{
	"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "CLUSTER", "NAME", "IMG", "WORKSHOP_OWN",
	"GOFLAGS", "GOOS", "GOARCH", "CDPATH",
}

// Environment returns this process's environment without the variables in others, and then the additional variables.
func Environment(more ...string) []string {
	environment := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(others, name)
	})
	return append(environment, more...)
}

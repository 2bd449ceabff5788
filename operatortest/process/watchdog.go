package process

import (
	"fmt"
	"io"
	"os/exec"

	"example.com/operator-workshop/internal/procgroup"
)

// watchdogScript reads the ID of a process group, and then waits until the script's standard input is closed. That
// happens when the test process ends, even by kill -9. Then the script kills the group, if it was given one, and
// removes the operator's folder, which is its argument.
const watchdogScript = `trap '' HUP INT TERM
read -r group
read -r _
[ -z "$group" ] || kill -s KILL -- "-$group"
rm -rf "$1"
`

// watchdog kills an operator if the test process ends first. Linux can send a signal in that case (Pdeathsig), but only
// to the operator's process itself, not to those that it started.
type watchdog struct {
	command *exec.Cmd
	leash   io.Writer
}

func startWatchdog(dir string) (*watchdog, error) {
	command := exec.Command("/bin/sh", "-c", watchdogScript, "watchdog", dir)
	leash, err := procgroup.Watchdog(command)
	if err != nil {
		return nil, err
	}
	return &watchdog{command: command, leash: leash}, nil
}

// guard tells the watchdog which group to kill.
func (w *watchdog) guard(group int) {
	_, _ = fmt.Fprintln(w.leash, group) // an error means that something killed the watchdog
}

// dismiss ends the watchdog before it can kill the group.
func (w *watchdog) dismiss() {
	_ = w.command.Process.Kill()
	_ = w.command.Wait()
}

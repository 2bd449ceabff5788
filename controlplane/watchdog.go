package controlplane

import (
	"fmt"
	"os/exec"
	"sync"

	"example.com/operator-workshop/internal/procgroup"
)

// watchdogScript waits until its standard input ends. That happens when this process closes it or ends, even by kill -9.
// Then the script kills every component of the control planes in the folder and its direct subfolders, and removes the
// folder. By then a process ID may belong to another program, so the script first checks the arguments of the process:
// a component's arguments contain the folder's path.
const watchdogScript = `trap '' HUP INT TERM
cat >/dev/null
for file in "$1"/run/* "$1"/*/run/*; do
	[ -f "$file" ] && { read -r _; read -r pid; } <"$file" || continue
	if [ -r "/proc/$pid/cmdline" ]; then args=$(tr '\0' ' ' <"/proc/$pid/cmdline")
	else args=$(ps -ww -o args= -p "$pid"); fi 2>/dev/null
	case $args in *"$1"*) kill -s KILL -- "-$pid" 2>/dev/null ;; esac
done
rm -rf "$1" 2>/dev/null || { sleep 1; rm -rf "$1"; }
`

// startWatchdog starts the watchdog of a folder. end makes it act, and waits until it has finished.
func startWatchdog(dir string) (end func() error, err error) {
	command := exec.Command("/bin/sh", "-c", watchdogScript, "watchdog", dir)
	leash, err := procgroup.Watchdog(command)
	if err != nil {
		return nil, err
	}
	return sync.OnceValue(func() error {
		_ = leash.Close() // an error means that the watchdog has already exited
		if err := command.Wait(); err != nil {
			return fmt.Errorf("end the control plane: %w", err)
		}
		return nil
	}), nil
}

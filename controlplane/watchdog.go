package controlplane

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// watchdogScript waits until its standard input ends, which happens when the process closes it or ends, even by kill
// -9. Then it kills every component and removes the folder. By then a process ID may belong to another program, so it
// first checks the arguments of the process: a component's arguments contain the folder's path.
const watchdogScript = `trap '' HUP INT TERM
cat >/dev/null
for file in "$1"/run/*; do
	[ -f "$file" ] && { read -r _; read -r pid; } <"$file" || continue
	if [ -r "/proc/$pid/cmdline" ]; then args=$(tr '\0' ' ' <"/proc/$pid/cmdline")
	else args=$(ps -ww -o args= -p "$pid"); fi 2>/dev/null
	case $args in *"$1"*) kill -s KILL -- "-$pid" 2>/dev/null ;; esac
done
rm -rf "$1" 2>/dev/null || { sleep 1; rm -rf "$1"; }
`

// watchdog ends a control plane when the process that started it ends.
type watchdog struct {
	command *exec.Cmd
	leash   io.Closer
	end     func() error
}

func newWatchdog(dir string) (*watchdog, error) {
	command := exec.Command("/bin/sh", "-c", watchdogScript, "watchdog", dir)
	// A group of its own keeps the watchdog alive when Ctrl-C ends this process's group.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	leash, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	w := &watchdog{command: command, leash: leash}
	w.end = sync.OnceValue(func() error {
		_ = leash.Close()
		if err := command.Wait(); err != nil {
			return fmt.Errorf("end the control plane: %w", err)
		}
		return nil
	})
	return w, nil
}

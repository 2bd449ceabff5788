package operatortest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// watchdogScript waits until its standard input ends, which happens when the
// test process closes it or dies in whatever way, kill -9 included. Then it
// kills every program of the cluster and removes the cluster's folder. A process
// id may belong to a stranger by then, so the program is looked at first: the
// cluster's own name that folder in their arguments. Each leads a process group.
const watchdogScript = `trap '' HUP INT TERM
cat >/dev/null
[ ! -f "$1/pids" ] || while read -r pid; do
	if [ -r "/proc/$pid/cmdline" ]; then args=$(tr '\0' ' ' <"/proc/$pid/cmdline")
	else args=$(ps -ww -o args= -p "$pid"); fi 2>/dev/null
	case $args in *"$1"*) kill -s KILL -- "-$pid" 2>/dev/null ;; esac
done <"$1/pids"
rm -rf "$1" 2>/dev/null || { sleep 1; rm -rf "$1"; }
`

// collectorSetting makes the programs' garbage collectors run less often: a test cluster lives for a minute, and what
// it costs is processor time. With it a suite takes a seventh less of that. Source: GOGC in the documentation of runtime.
const collectorSetting = "GOGC=400"

// killTimeout bounds how long killed programs may take to vanish.
const killTimeout = 10 * time.Second

// processes are the programs of one cluster and the watchdog that ends them.
type processes struct {
	dir        string
	watchdog   *exec.Cmd
	leash      io.Closer
	components []*component
}

// component is a program of the cluster that the kit starts itself.
type component struct {
	name string
	log  string
	// ended is closed when the program has ended.
	ended chan struct{}
}

// newProcesses starts the watchdog over an existing folder.
func newProcesses(dir string) (*processes, error) {
	watchdog := exec.Command("/bin/sh", "-c", watchdogScript, "watchdog", dir)
	// A group of its own keeps the watchdog alive when Ctrl-C ends the test process's group.
	watchdog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	leash, err := watchdog.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	if err := watchdog.Start(); err != nil {
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	return &processes{dir: dir, watchdog: watchdog, leash: leash}, nil
}

// launcher writes a script that records its own process id for the watchdog and
// then becomes the program. envtest starts two of the programs and keeps their
// ids to itself, so the programs have to report them. A setting of the caller's environment wins.
func (p *processes) launcher(assets, program string) (string, error) {
	path := filepath.Join(p.dir, "launch-"+program)
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --help ] || echo $$ >>%s\n[ \"${GOGC+set}\" ] || export %s\nexec %s \"$@\"\n",
		shellQuote(filepath.Join(p.dir, "pids")), collectorSetting, shellQuote(filepath.Join(assets, program)))
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		return "", fmt.Errorf("write the launcher of %s: %w", program, err)
	}
	return path, nil
}

// start runs a program until the cluster is stopped.
func (p *processes) start(assets, program string, args ...string) error {
	path, err := p.launcher(assets, program)
	if err != nil {
		return err
	}
	started := &component{name: program, log: filepath.Join(p.dir, program+".log"), ended: make(chan struct{})}
	log, err := os.Create(started.log)
	if err != nil {
		return fmt.Errorf("create the log of %s: %w", program, err)
	}
	defer func() { _ = log.Close() }() // the program holds its own descriptor
	command := exec.Command(path, args...)
	command.Stdout, command.Stderr = log, log
	command.Dir = p.dir
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	go func() {
		defer close(started.ended)
		_ = command.Wait() // how it ended is in its log
	}()
	p.components = append(p.components, started)
	return nil
}

// failed returns an error if a program has ended on its own, with the last lines of its log.
func (p *processes) failed() error {
	for _, component := range p.components {
		select {
		case <-component.ended:
			return fmt.Errorf("%s ended on its own; its last lines:\n%s", component.name, lastLines(component.log, 10))
		default:
		}
	}
	return nil
}

// release makes the watchdog end every program. It may be called at any time, also twice.
func (p *processes) release() { _ = p.leash.Close() }

// kill ends every program at once and waits until they are gone. Their state is thrown away with the folder,
// so there is nothing to shut down in order.
func (p *processes) kill() error {
	p.release()
	if err := p.watchdog.Wait(); err != nil {
		return fmt.Errorf("end the cluster's programs: %w", err)
	}
	timeout := time.After(killTimeout)
	for _, component := range p.components {
		select {
		case <-component.ended:
		case <-timeout:
			return fmt.Errorf("%s is still running %s after it was killed", component.name, killTimeout)
		}
	}
	return nil
}

func lastLines(path string, n int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// shellQuote quotes text for a POSIX shell.
func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

package controlplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// endTimeout bounds three waits: until a killed process is gone, until a new one has written its ID, and until a
	// process's file can be locked.
	endTimeout = 10 * time.Second
	// processPoll is the interval at which such a wait checks again. A killed process is gone after about 20 ms.
	processPoll = 2 * time.Millisecond
)

// launchScript writes its own process ID to the file that it inherits, and then becomes the component. With its umask, only
// the owner can read the files that the component creates, such as etcd's data.
const launchScript = `umask 077; echo $$ >&3; exec "$@"`

// process is one component's process.
//
// It is identified by a file: the process that holds the lock on that file is the component, and the file contains its
// process ID. The system releases the lock when the process ends, however it ends. So even if the ID in the file belongs
// to another program, as may happen after a reboot or in a copy of the folder, that program is never mistaken for the
// component.
type process struct {
	file string
}

// running returns the process ID and the fingerprint of the command that started the process, or 0 if it isn't running.
func (p process) running() (pid int, fingerprint string, err error) {
	file, err := os.Open(p.file)
	if errors.Is(err, os.ErrNotExist) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	defer file.Close()
	// The lock is shared, so that two commands that check at the same time don't mistake each other for the component.
	switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case err == nil:
		return 0, "", nil
	case !errors.Is(err, syscall.EWOULDBLOCK):
		return 0, "", fmt.Errorf("check the lock on %s: %w", p.file, err)
	}
	content, err := os.ReadFile(p.file)
	if err != nil {
		return 0, "", err
	}
	fingerprint, number, _ := strings.Cut(strings.TrimSpace(string(content)), "\n")
	if pid, err = strconv.Atoi(number); err != nil {
		return 0, fingerprint, errNoNumber
	}
	return pid, fingerprint, nil
}

// errNoNumber means that a process was started but has not written its ID yet.
var errNoNumber = errors.New("a process has not written its ID yet")

// await is like running, but waits for the ID of a process that was started a moment ago.
func (p process) await(ctx context.Context) (pid int, fingerprint string, err error) {
	waitErr := poll(ctx, endTimeout, processPoll, func(context.Context) bool {
		pid, fingerprint, err = p.running()
		return !errors.Is(err, errNoNumber)
	})
	return pid, fingerprint, errors.Join(waitErr, err)
}

// start runs a command as the process. Its output is appended to the log.
func (p process) start(ctx context.Context, command []string, dir, log string, env []string) error {
	file, err := os.OpenFile(p.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() // the process holds its own descriptor, and with it the lock
	// Try again: another command that is checking the process may hold the lock for a moment.
	var locked error
	waitErr := poll(ctx, endTimeout, processPoll, func(context.Context) bool {
		locked = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		return !errors.Is(locked, syscall.EWOULDBLOCK)
	})
	if err := errors.Join(waitErr, locked); err != nil {
		return fmt.Errorf("lock %s: %w", p.file, err)
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(file, fingerprint(command)); err != nil {
		return err
	}
	output, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	shell := exec.Command("/bin/sh", append([]string{"-c", launchScript, "sh"}, command...)...)
	shell.Dir, shell.Env = dir, env
	shell.Stdout, shell.Stderr = output, output
	shell.ExtraFiles = []*os.File{file}
	// In a session of its own, the process survives Ctrl-C and a closed terminal.
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := shell.Start(); err != nil {
		return err
	}
	go func() { _ = shell.Wait() }() // reaps it; its log says how it ended
	return nil
}

// kill terminates the process, if it is running, and waits until it is gone.
func (p process) kill(ctx context.Context) error {
	pid, _, err := p.await(ctx)
	if err != nil || pid == 0 {
		return err
	}
	// The process leads a process group, which includes everything that it has started.
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return poll(ctx, endTimeout, processPoll, func(context.Context) bool {
		pid, _, err := p.running()
		return pid == 0 && err == nil
	})
}

// fingerprint identifies a command: Up replaces a component that was started with a different command from the one that
// Up would use now.
func fingerprint(command []string) string {
	sum := sha256.Sum256([]byte(strings.Join(command, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// environment is the components' entire environment: they don't inherit the caller's, because etcd treats each ETCD_…
// variable as a flag.
//
// GOGC sets how often they collect garbage: less often than with Go's default in a temporary control plane, to save CPU
// time, and more often in any other, because memory limits how many control planes fit on a host.
// The caller's own setting takes precedence. Source: GOGC in the documentation of package runtime.
func (c *ControlPlane) environment() []string {
	collect := "GOGC=50"
	if c.options.Temporary {
		collect = "GOGC=400"
	}
	env := []string{"HOME=" + c.dir, "TMPDIR=" + c.dir, collect}
	if chosen, found := os.LookupEnv("GOGC"); found {
		env = append(env, "GOGC="+chosen)
	}
	return env
}

// lastMessage returns the last line of a component's log, or "no message" if the log is empty. That line usually says
// why the component ended.
func lastMessage(log string) string {
	content, _ := os.ReadFile(log)
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	if last := strings.TrimSpace(string(lines[len(lines)-1])); last != "" {
		return last
	}
	return "no message"
}

// poll calls done repeatedly until it returns true. If the limit is reached or the context ends first, poll returns the
// reason.
func poll(ctx context.Context, limit, interval time.Duration, done func(context.Context) bool) error {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTimeLimit)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for !done(limited) {
		select {
		case <-limited.Done():
			return context.Cause(limited)
		case <-ticker.C:
		}
	}
	return nil
}

// errTimeLimit is the error for a wait that took too long.
var errTimeLimit = errors.New("timed out")

func (c *ControlPlane) process(component string) process {
	return process{file: filepath.Join(c.dir, "run", component)}
}

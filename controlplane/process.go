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
	// endTimeout bounds the wait for a killed process to be gone, and for a new one to write down its number.
	endTimeout = 10 * time.Second
	// processPoll is how often such a wait looks again. Killed processes are gone after about 20 ms.
	processPoll = 2 * time.Millisecond
)

// launchScript writes its own process number to the file that it inherits, and then becomes the component. Only the owner
// can read the files that the component makes, such as etcd's data.
const launchScript = `umask 077; echo $$ >&3; exec "$@"`

// process is one component's process.
//
// It is identified by a file: the process that holds the lock on that file is the component, and the file holds its
// number. The system releases the lock when the process ends, however it ends. So a number that now belongs to another
// program, after a reboot or in a copy of the folder, is never taken for the component.
type process struct {
	file string
}

// running tells whether the process runs, and if so its number and the fingerprint of the command that started it.
func (p process) running() (pid int, fingerprint string, err error) {
	file, err := os.Open(p.file)
	if errors.Is(err, os.ErrNotExist) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	defer file.Close()
	// A shared lock, so that two commands that look at the same time don't take each other for the component.
	switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case err == nil:
		return 0, "", nil
	case !errors.Is(err, syscall.EWOULDBLOCK):
		return 0, "", fmt.Errorf("look at %s: %w", p.file, err)
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

// errNoNumber says that a process was started and has not written its number yet.
var errNoNumber = errors.New("a process has not written down its number yet")

// await is running, but waits for the number of a process that has just been started.
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
	// A command that looks at the process holds the lock for a moment.
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
	// A session of its own: neither Ctrl-C nor the end of the terminal reaches it.
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := shell.Start(); err != nil {
		return err
	}
	go func() { _ = shell.Wait() }() // reaps it; its log says how it ended
	return nil
}

// kill ends the process, if it runs, and waits until it is gone.
func (p process) kill(ctx context.Context) error {
	pid, _, err := p.await(ctx)
	if err != nil || pid == 0 {
		return err
	}
	// It leads a process group, which includes all that it has started.
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return poll(ctx, endTimeout, processPoll, func(context.Context) bool {
		pid, _, err := p.running()
		return pid == 0 && err == nil
	})
}

// fingerprint identifies a command: a component that was started by a different one is replaced.
func fingerprint(command []string) string {
	sum := sha256.Sum256([]byte(strings.Join(command, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// environment is all that the components see of the caller's environment. etcd takes each ETCD_… variable for a flag.
//
// GOGC sets how often they collect garbage: more often than Go's default, because memory limits how many control planes
// fit on a host; but less often if the control plane lives only as long as one process, to save processor time. The
// caller's own setting wins. Source: GOGC in the documentation of package runtime.
func (c *ControlPlane) environment() []string {
	collect := "GOGC=50"
	if c.options.tied {
		collect = "GOGC=400"
	}
	env := []string{"HOME=" + c.dir, "TMPDIR=" + c.dir, collect}
	if chosen, found := os.LookupEnv("GOGC"); found {
		env = append(env, "GOGC="+chosen)
	}
	return env
}

// lastMessage is the last line of a component's log, which says why it ended, or "no message".
func lastMessage(log string) string {
	content, _ := os.ReadFile(log)
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	if last := strings.TrimSpace(string(lines[len(lines)-1])); last != "" {
		return last
	}
	return "no message"
}

// poll waits until done reports true.
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

// errTimeLimit marks a wait that took longer than it may.
var errTimeLimit = errors.New("the time limit is over")

func (c *ControlPlane) process(component string) process {
	return process{file: filepath.Join(c.dir, "run", component)}
}

package classroom

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"example.com/operator-workshop/internal/leftover"
	"example.com/operator-workshop/internal/procgroup"
	"example.com/operator-workshop/internal/quote"
	"example.com/operator-workshop/internal/repo"
)

// errInterrupted is the error after Ctrl-C. Where the work can be continued, the caller adds the command for that.
var errInterrupted = errors.New("interrupted")

// childGrace is how long a tool's children may keep running after the tool has been stopped. It gives docker time to
// create a container, which might otherwise appear after the last check for containers.
const childGrace = 5 * time.Second

// errTimeLimit marks a wait that exceeded its limit.
var errTimeLimit = errors.New("timed out")

// runner runs the tools in bin/.
type runner struct {
	repo repo.Repo
	env  []string
	out  io.Writer
	// log is the path of the file that receives the tools' messages. Errors mention it. If it is empty, the messages are
	// discarded.
	log string
}

// kind shows a kind command and then runs it. The command's messages go to the log.
func (r runner) kind(ctx context.Context, args ...string) error {
	fmt.Fprintf(r.out, "$ kind %s\n", quote.Args(args))
	_, err := r.output(ctx, "kind", args...)
	return err
}

// output runs a tool without showing the command, and returns the tool's standard output. The log gets both the standard
// output and the standard error.
func (r runner) output(ctx context.Context, tool string, args ...string) (string, error) {
	path := filepath.Join(r.repo.Bin(), tool)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is missing: run `make tools`", filepath.Join("bin", tool))
	}
	var stdout, stderr bytes.Buffer
	// The shell sets the umask and then becomes the tool, so that no other user can read the files that the tool writes,
	// such as a kubeconfig. Setting the umask in this program would affect all its goroutines.
	command := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `umask 077; exec "$0" "$@"`, path}, args...)...)
	command.Dir = r.repo.Root
	command.Env = append(cleanEnvironment(), r.env...)
	command.Stdout, command.Stderr = &stdout, &stderr
	// In a process group of its own, the tool does not receive the terminal's Ctrl-C. The context stops it instead, at
	// a point that this program controls.
	procgroup.Isolate(command)
	command.WaitDelay = time.Second
	err := command.Run()
	if ctx.Err() != nil && command.Process != nil {
		procgroup.End(command.Process.Pid, procgroup.Step{Wait: childGrace})
	}
	messages := stdout.String() + stderr.String()
	r.appendLog(tool, args, messages)
	if ctx.Err() != nil {
		return "", contextError(ctx)
	}
	if err != nil {
		if full := fullDisk(messages); full != nil {
			return stdout.String(), full
		}
		message := fmt.Sprintf("%s %s: %s", tool, args[0], lastLine(messages, err))
		if r.log != "" {
			message += fmt.Sprintf(" (log: %s)", r.log)
		}
		return stdout.String(), errors.New(message)
	}
	return stdout.String(), nil
}

// relative shortens a path for the commands shown to a learner: these run in the repository's root.
func (r runner) relative(path string) string {
	if rel, err := filepath.Rel(r.repo.Root, path); err == nil {
		return rel
	}
	return path
}

func contextError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errTimeLimit
	}
	return errInterrupted
}

func (r runner) appendLog(tool string, args []string, messages string) {
	if r.log == "" {
		return
	}
	file, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	fmt.Fprintf(file, "%s $ %s %s\n%s", time.Now().Format(time.RFC3339), tool, quote.Args(args), messages)
}

// cleanEnvironment returns this process's environment without KUBECONFIG and the mark of a play, and with kuberc
// switched off: the learner's settings for kubectl might change what commands do.
func cleanEnvironment() []string {
	var clean []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		// A cluster that was repaired by a chapter's command must outlive the play, so drop the play's mark.
		if name == "KUBECONFIG" || name == leftover.Variable {
			continue
		}
		clean = append(clean, entry)
	}
	return append(clean, "KUBERC=off")
}

// lastLine returns the most informative line of a tool's messages: the line that kind marks as its error, or else the
// last line that is not empty. If there are no messages, it returns the text of err.
func lastLine(messages string, err error) string {
	lines := strings.Split(strings.TrimSpace(messages), "\n")
	for _, line := range lines {
		if told, found := strings.CutPrefix(line, "ERROR: "); found {
			return told
		}
	}
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return err.Error()
}

// poll waits until done returns true. It fails when limit has passed or ctx ends.
func poll(ctx context.Context, limit time.Duration, done func(context.Context) bool) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !done(limited) {
		select {
		case <-limited.Done():
			return contextError(limited)
		case <-ticker.C:
		}
	}
	return nil
}

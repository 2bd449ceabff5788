package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/operatortest"
)

// defaultGrace is the default of a pod's terminationGracePeriodSeconds.
const defaultGrace = 30 * time.Second

// withheld lists the environment variables that the operator doesn't inherit from the tests, because they could lead it
// to an API server directly, past the kit's proxy.
var withheld = []string{"KUBECONFIG", "USE_EXISTING_CLUSTER", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}

// Command says how to start an operator. All strings in Args, LeaderElection, Resync and Env are templates of package
// text/template that can use [Values]: "--namespace={{.Namespace}}".
type Command struct {
	// Args contains the program and its arguments. A program without a slash in its name is looked up on the tests' PATH; a
	// relative path is relative to Dir. The kit may run several operators at once, so the program must not listen on
	// fixed ports. If it doesn't understand ":0", use {{.FreePort}}. An argument that a condition makes empty, such as
	// "{{with .Namespace}}--namespace={{.}}{{end}}", is left out.
	Args []string
	// LeaderElection lists arguments to append to Args in trials with leader election. If the operator elects a leader by
	// default, add "--leader-elect={{.LeaderElection}}", or a similar flag, to Args instead.
	LeaderElection []string
	// Resync lists arguments to append to Args in trials that need more frequent resyncs than the operator's default.
	Resync []string
	// Env lists variables to add to the operator's environment, as NAME=value. KUBECONFIG and KUBECACHEDIR are already
	// set. All other variables of the tests are inherited, except USE_EXISTING_CLUSTER, KUBERNETES_SERVICE_HOST and
	// KUBERNETES_SERVICE_PORT. If HTTPS_PROXY is set, some languages' clients need NO_PROXY=127.0.0.1.
	Env []string
	// Dir is the program's working directory. If it is empty, the program runs in that of the tests.
	Dir string
	// Logs is the folder for what the operator prints, with a file for each start; it is created if necessary. If Logs
	// is empty, the file is deleted when the operator has ended; errors and reports can still show its last lines.
	Logs string
	// Grace is how long the operator may take to exit after SIGTERM. If it is zero, the limit is 30 seconds, the
	// default for a pod.
	Grace time.Duration
}

// ServesWebhooks reports whether the command says where to serve webhooks, with {{.WebhookPort}}.
func (c Command) ServesWebhooks() bool { return c.uses(".WebhookPort") }

// WebhooksOnly reports whether the command can start a process that has webhooks but no controllers, with
// {{.WebhooksOnly}}.
func (c Command) WebhooksOnly() bool { return c.uses(".WebhooksOnly") }

// uses reports whether the placeholder occurs in Args or Env.
func (c Command) uses(placeholder string) bool {
	return slices.ContainsFunc(slices.Concat(c.Args, c.Env), func(text string) bool { return strings.Contains(text, placeholder) })
}

// Run runs the operator until it exits or the context ends, and returns when no process of the operator's process group
// is left. If the whole group ends within Grace after SIGTERM and the operator exits without an error, Run returns nil,
// even if the signal itself ended the operator or, as with a Java virtual machine, the exit status is 143. If the kit
// killed the operator, Run returns traffic.ErrKilled. Once the operator has been started, any other error contains the
// last lines that it printed.
func (c Command) Run(ctx context.Context, config *rest.Config, options operatortest.RunOptions) error {
	dir, err := os.MkdirTemp("", "operatortest-process-")
	if err != nil {
		return fmt.Errorf("create the operator's folder: %w", err)
	}
	defer os.RemoveAll(dir)
	proxy, err := startProxy(config)
	if err != nil {
		return err
	}
	defer proxy.stop()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(proxy.kubeconfig(options.Namespace), kubeconfig); err != nil {
		return fmt.Errorf("write the operator's kubeconfig: %w", err)
	}
	command, err := c.command(valuesOf(kubeconfig, options))
	if err != nil {
		return err
	}
	log, err := c.createLog(dir, options.Namespace)
	if err != nil {
		return err
	}
	defer log.Close()
	if options.LogFile != nil {
		if err := options.LogFile(log.Name()); err != nil {
			return err
		}
	}
	command.Stdout, command.Stderr = log, log
	started, err := start(command, log, dir)
	if err != nil {
		return err
	}
	if options.ProcessGroup != nil {
		options.ProcessGroup(command.Process.Pid)
	}
	return started.wait(ctx, c.grace())
}

// Check returns an error if the command has a fault that is visible without starting it, such as an unknown placeholder
// or a missing program.
func (c Command) Check() error {
	command, err := c.command(valuesOf("", operatortest.RunOptions{LeaderElection: &operatortest.LeaderElection{}, Resync: 1}))
	if err != nil {
		return err
	}
	program := command.Path
	if command.Err != nil {
		return command.Err
	}
	if !filepath.IsAbs(program) { // it has a slash: exec.Command has already looked up any other name on the PATH
		var err error
		if program, err = filepath.Abs(filepath.Join(c.Dir, program)); err != nil {
			return err
		}
	}
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("the program can't be started: %w", err)
	}
	return nil
}

// command returns the operator's command, not yet started.
func (c Command) command(values Values) (*exec.Cmd, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("start the operator: Command.Args is empty: its first element must be the program")
	}
	templates := slices.Clone(c.Args)
	if values.LeaderElection {
		templates = append(templates, c.LeaderElection...)
	}
	if values.Resync > 0 {
		templates = append(templates, c.Resync...)
	}
	args, err := values.arguments(templates)
	if err != nil {
		return nil, err
	}
	env, err := values.fill(c.Env)
	if err != nil {
		return nil, err
	}
	if c.Dir != "" { // Otherwise a missing folder looks like a missing program.
		if _, err := os.Stat(c.Dir); err != nil {
			return nil, fmt.Errorf("start the operator in Command.Dir: %w", err)
		}
	}
	command := exec.Command(args[0], args[1:]...)
	command.Dir = c.Dir
	command.Env = append(inherited(os.Environ()), "KUBECONFIG="+values.Kubeconfig,
		// kubectl caches discovery by the API server's host and port, and ports are reused.
		"KUBECACHEDIR="+filepath.Join(filepath.Dir(values.Kubeconfig), "kubectl-cache"))
	command.Env = append(command.Env, env...)
	return command, nil
}

func inherited(environment []string) []string {
	return slices.DeleteFunc(environment, func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return slices.Contains(withheld, name)
	})
}

// createLog creates the file for what the operator prints: in Logs, or else in dir, a folder that is deleted when the
// operator has ended. Unlike a pipe, a file can block neither the operator nor the wait for it to end.
func (c Command) createLog(dir, namespace string) (*os.File, error) {
	if c.Logs != "" {
		dir = c.Logs
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the folder of the operator's logs: %w", err)
	}
	// Sorted by name, the files of a namespace are in the order in which the operators were started.
	log, err := os.CreateTemp(dir, cmp.Or(namespace, "all-namespaces")+time.Now().Format("-20060102-150405.000000-*.log"))
	if err != nil {
		return nil, fmt.Errorf("create the operator's log: %w", err)
	}
	return log, nil
}

func (c Command) grace() time.Duration {
	if c.Grace == 0 {
		return defaultGrace
	}
	return c.Grace
}

// explain adds advice to the error from a failed start.
func explain(err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("start the operator: %w: build the program before the tests; a relative path counts from Command.Dir, and a script needs the interpreter that its first line names", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("start the operator: %w: make the file executable with chmod +x", err)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("start the operator: %w: build the program for this machine, or begin a script with #!/bin/sh", err)
	}
	return fmt.Errorf("start the operator: %w", err)
}

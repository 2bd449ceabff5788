package process

import (
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

// defaultGrace is what a pod gets: the default of terminationGracePeriodSeconds.
const defaultGrace = 30 * time.Second

// withheld are the variables of the environment that the operator doesn't inherit: they lead to another cluster.
var withheld = []string{"KUBECONFIG", "USE_EXISTING_CLUSTER", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}

// Command is how to start an operator. All strings of Args, LeaderElection, Resync and Env are templates of package
// text/template, in which [Values] can be used: "--namespace={{.Namespace}}".
type Command struct {
	// Args are the program and its arguments. A program without a slash in its name is looked for on the PATH of the
	// tests, a relative path counts from Dir. The kit may run several at once: let the program listen nowhere, or on
	// free ports. Where ":0" doesn't do that, {{.FreePort}} is one.
	Args []string
	// LeaderElection are further arguments, for when the kit asks for leader election. An operator that elects a leader
	// unless it is told otherwise has "--leader-elect={{.LeaderElection}}", or the like, in Args.
	LeaderElection []string
	// Resync are further arguments, for when the kit asks for resyncs more often than by default.
	Resync []string
	// Env are further settings of the environment, as NAME=value. KUBECONFIG is set already. The rest is that of the
	// tests, without what leads to another cluster. Where HTTPS_PROXY is set, some languages' clients need
	// NO_PROXY=127.0.0.1.
	Env []string
	// Dir is the folder that the program runs in; that of the tests if empty.
	Dir string
	// Logs is the folder for what the operator prints, a file for each start; it is made if need be. If it is empty, only
	// the last lines are kept, for an error.
	Logs string
	// Grace is how long the operator may take to end after SIGTERM; 30 seconds if zero, as in a pod.
	Grace time.Duration
}

// ServesWebhooks tells whether the command says where to serve webhooks, by {{.WebhookPort}}.
func (c Command) ServesWebhooks() bool {
	return slices.ContainsFunc(slices.Concat(c.Args, c.Env), func(text string) bool { return strings.Contains(text, ".WebhookPort") })
}

// Run runs the operator until the context ends, and returns when its process and all that it started have ended. An
// operator that ends on SIGTERM returns nil, also if SIGTERM is what ended it (exit status 143, as of a Java virtual
// machine). The error of a killed one is traffic.ErrKilled. Each other error has the last lines that it printed.
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
	return started.wait(ctx, c.grace())
}

// Check returns an error if the operator could not be started: a placeholder that does not exist, or no such program.
func (c Command) Check() error {
	command, err := c.command(valuesOf("", operatortest.RunOptions{LeaderElection: &operatortest.LeaderElection{}, Resync: 1}))
	if err != nil {
		return err
	}
	program := command.Path
	if command.Err != nil {
		return command.Err
	}
	if !filepath.IsAbs(program) {
		var err error
		if program, err = filepath.Abs(filepath.Join(c.Dir, program)); err != nil { // a name without a slash is looked for on the PATH
			return err
		}
	}
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("the program can't be started: %w", err)
	}
	return nil
}

// command is the operator's, not started yet.
func (c Command) command(values Values) (*exec.Cmd, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("start the operator: Command.Args is empty: it begins with the program")
	}
	templates := slices.Clone(c.Args)
	if values.LeaderElection {
		templates = append(templates, c.LeaderElection...)
	}
	if values.Resync > 0 {
		templates = append(templates, c.Resync...)
	}
	args, err := values.fill(templates)
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
		// kubectl keeps what it knows of an API server by its port, and ports are used again.
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

// createLog makes the file for what the operator prints: in Logs, else in a folder that goes with the operator. A file
// in place of a pipe can't hold up an operator, nor the wait for its end.
func (c Command) createLog(dir, namespace string) (*os.File, error) {
	if c.Logs != "" {
		dir = c.Logs
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the folder of the operator's logs: %w", err)
	}
	// Sorted by name, the files of one namespace are in the order of the starts.
	log, err := os.CreateTemp(dir, namespace+time.Now().Format("-150405.000000-*.log"))
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

// explain adds to the error of a start what to do about it.
func explain(err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("start the operator: %w: build the program before the tests; a relative path counts from Command.Dir", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("start the operator: %w: make the file executable with chmod +x", err)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("start the operator: %w: build the program for this machine, or begin a script with #!/bin/sh", err)
	}
	return fmt.Errorf("start the operator: %w", err)
}

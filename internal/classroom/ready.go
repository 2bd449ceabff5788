package classroom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// errComponentEnded marks errors about a component that does not run any more.
var errComponentEnded = errors.New("ended")

// waitReady waits for the API server; a component that dies meanwhile ends the wait.
func (e *embedded) waitReady(ctx context.Context) error {
	var died error
	err := poll(ctx, startLimit, func(ctx context.Context) bool {
		died = e.allAlive(ctx)
		return died != nil || e.answers(ctx)
	})
	switch {
	case died != nil:
		return died
	case errors.Is(err, errInterrupted):
		return err
	case err != nil:
		return fmt.Errorf("the API server of cluster %s does not answer: %w (its messages: %s)", e.options.Name, err, e.relative(filepath.Join(e.dir, "logs")))
	}
	return nil
}

// allAlive names the first component that has ended. kwokctl reports success for
// components that die right after their start, for example on a port taken meanwhile.
func (e *embedded) allAlive(ctx context.Context) error {
	alive, err := processes(ctx, e.dir)
	if err != nil {
		return err
	}
	for _, name := range dead(alive) {
		log := filepath.Join(e.dir, "logs", name+".log")
		content, _ := os.ReadFile(log)
		return fmt.Errorf("%s %w: %s (all its messages: %s)", name, errComponentEnded, lastLine(string(content), errors.New("no message")), e.relative(log))
	}
	return nil
}

// waitUsable waits until pods can be created and find a node: the controller
// manager makes the default service account, without which admission refuses pods,
// and takes off the taint that every new node starts with.
func (e *embedded) waitUsable(ctx context.Context) error {
	var died error
	missing := "nodes"
	err := poll(ctx, usableLimit, func(ctx context.Context) bool {
		died = e.allAlive(ctx)
		missing = e.missing(ctx)
		return died != nil || missing == ""
	})
	switch {
	case died != nil:
		return died
	case errors.Is(err, errInterrupted):
		return err
	case err != nil:
		return fmt.Errorf("cluster %s does not become usable: %w, and it has no %s yet", e.options.Name, err, missing)
	}
	return nil
}

// missing says what a pod would still lack, or "".
func (e *embedded) missing(ctx context.Context) string {
	var found struct {
		Items []struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct{ Taints []struct{ Key string } }
			Status   struct{ Conditions []condition }
		}
	}
	if err := getJSON(ctx, e.quietKubectl, &found, "get", "nodes,serviceaccounts", "--namespace=default", "--output=json", "--request-timeout=5s"); err != nil {
		return "answering API server"
	}
	account := false
	for _, item := range found.Items {
		switch {
		case item.Kind == "ServiceAccount" && item.Metadata.Name == "default":
			account = true
		case item.Kind == "Node" && (!isReady(item.Status.Conditions) || len(item.Spec.Taints) > 0):
			return "ready node " + item.Metadata.Name
		}
	}
	if !account {
		return "default service account"
	}
	return ""
}

// quietKubectl leaves no trace in the log, for what is asked again and again.
func (e *embedded) quietKubectl(ctx context.Context, args ...string) (string, error) {
	quiet := e.runner
	quiet.log = ""
	return quiet.output(ctx, "kubectl", append([]string{"--kubeconfig", e.Kubeconfig()}, args...)...)
}

func (e *embedded) kubectl(ctx context.Context, args ...string) (string, error) {
	return e.runner.output(ctx, "kubectl", append([]string{"--kubeconfig", e.Kubeconfig()}, args...)...)
}

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

// waitUsable waits until nodes are Ready and pods can be created: the controller
// manager makes the default service account, without which admission refuses them.
func (e *embedded) waitUsable(ctx context.Context) error {
	waits := [][]string{
		{"wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"},
		{"wait", "--for=create", "serviceaccount/default", "--namespace=default", "--timeout=60s"},
	}
	for _, args := range waits {
		if _, err := e.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return e.allAlive(ctx)
}

func (e *embedded) kubectl(ctx context.Context, args ...string) (string, error) {
	return e.runner.output(ctx, "kubectl", append([]string{"--kubeconfig", e.Kubeconfig()}, args...)...)
}

package classroom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// errComponentEnded marks errors about a component that does not run any more.
var errComponentEnded = errors.New("ended")

// essential are the components without which no request is answered.
var essential = []string{"etcd", "kube-apiserver"}

// start runs a kwokctl command that starts components, and ends it as soon as an
// essential one of them has ended. kwokctl would wait two minutes for an answer then.
func (e *embedded) start(ctx context.Context, args ...string) error {
	watched, giveUp := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		never := func(context.Context) bool { return false }
		if err := e.await(watched, startLimit, never, essential...); errors.Is(err, errComponentEnded) {
			giveUp(err)
		}
	})
	err := e.runner.run(watched, "kwokctl", args...)
	if cause := context.Cause(watched); cause != nil && ctx.Err() == nil {
		err = cause
	}
	giveUp(nil)
	watching.Wait()
	return err
}

// await waits until done, or until one of the components has ended.
func (e *embedded) await(ctx context.Context, limit time.Duration, done func(context.Context) bool, names ...string) error {
	var died error
	err := poll(ctx, limit, func(ctx context.Context) bool {
		died = e.checkAlive(ctx, names...)
		return died != nil || done(ctx)
	})
	if died != nil {
		return died
	}
	return err
}

// waitReady waits for the API server.
func (e *embedded) waitReady(ctx context.Context, chosen ports) error {
	err := e.await(ctx, startLimit, func(ctx context.Context) bool { return e.serves(ctx, chosen) }, essential...)
	if errors.Is(err, errTimeLimit) {
		return fmt.Errorf("the API server of cluster %s does not answer: %w (its messages: %s)", e.options.Name, err, e.runner.relative(filepath.Join(e.dir, "logs")))
	}
	return err
}

// checkAlive fails when one of the components was started and has ended. kwokctl
// reports success for those that end right after their start, for example on a
// port taken meanwhile.
func (e *embedded) checkAlive(ctx context.Context, names ...string) error {
	name := ended(context.WithoutCancel(ctx), e.dir, names...)
	if name == "" {
		return nil
	}
	log := filepath.Join(e.dir, "logs", name+".log")
	content, _ := os.ReadFile(log)
	if full := fullDisk(string(content)); full != nil {
		return fmt.Errorf("%s %w: %w", name, errComponentEnded, full)
	}
	return fmt.Errorf("%s %w: %s (all its messages: %s)", name, errComponentEnded, lastLine(string(content), errors.New("no message")), e.runner.relative(log))
}

// waitUsable waits until pods can be created and find a node: the controller
// manager makes the default service account, without which admission refuses pods,
// and takes off the taint that every new node starts with.
func (e *embedded) waitUsable(ctx context.Context) error {
	missing := "nodes"
	err := e.await(ctx, usableLimit, func(ctx context.Context) bool {
		missing = e.missing(ctx)
		return missing == ""
	}, componentNames...)
	if errors.Is(err, errTimeLimit) {
		return fmt.Errorf("cluster %s does not become usable: %w, and it has no %s yet", e.options.Name, err, missing)
	}
	return err
}

// passingTaints keep pods off a node that is new, or was away for a while. Others are people's own, and stay.
var passingTaints = []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}

type taint struct{ Key string }

func (t taint) passes() bool { return slices.Contains(passingTaints, t.Key) }

// missing says what a pod would still lack, or "".
func (e *embedded) missing(ctx context.Context) string {
	var found struct {
		Items []struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct{ Taints []taint }
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
		case item.Kind == "Node" && (!isReady(item.Status.Conditions) || slices.ContainsFunc(item.Spec.Taints, taint.passes)):
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

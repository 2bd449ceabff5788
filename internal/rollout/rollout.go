// Package rollout waits until all pods of a Deployment are new and ready. A pod is new if it was created from the
// Deployment's current template. If a new pod can't start, for example because its image is missing, the wait ends with
// an error within seconds instead of at the time limit.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"example.com/operator-workshop/internal/kube"
)

const (
	// interval is the time between two checks of the cluster.
	interval = time.Second
	// failureTimeout is how long a problem must last to count. A Secret may be created a moment after the pods, and
	// the kubelet retries after failures that may be temporary.
	failureTimeout = 5 * time.Second
)

// Waiter waits for one Deployment.
type Waiter struct {
	// Get queries the cluster's API server.
	Get kube.Get
	// Namespace and Name identify the Deployment.
	Namespace, Name string
	// Limit bounds the wait.
	Limit time.Duration
	// Out receives a line about the progress whenever that line changes.
	Out io.Writer
}

// Wait waits until all of the Deployment's pods are new and ready. It fails if the cluster refuses a pod, if a pod
// can't start or keeps exiting, if the time limit is reached or ctx ends, or if the Deployment doesn't exist or the
// cluster can't be read. The error is one line that says what is wrong and, in many cases, what to do.
func (w *Waiter) Wait(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, w.Limit)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last sight
	var since time.Time
	for {
		seen, err := w.look(limited)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("interrupted: the rollout of deployment %s continues in the cluster", w.Name)
		case limited.Err() != nil:
			return w.late(last)
		case err != nil:
			return err
		}
		if seen.progress != last.progress {
			fmt.Fprintln(w.Out, seen.progress)
		}
		last = seen
		if seen.done {
			return nil
		}
		if seen.trouble == "" {
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		}
		if !since.IsZero() && time.Since(since) >= failureTimeout {
			return errors.New(seen.trouble + w.lastWords(ctx, seen.crashed))
		}
		select {
		case <-limited.Done():
		case <-ticker.C:
		}
	}
}

// late returns the error for a rollout that takes too long.
func (w *Waiter) late(last sight) error {
	reason := last.waiting
	if last.trouble != "" {
		reason = last.trouble
	}
	if reason == "" {
		reason = "not all of its pods are new and ready"
	}
	return fmt.Errorf("the rollout of deployment %s is not done after %s: %s; see `kubectl --namespace=%s describe pods`", w.Name, w.Limit, reason, w.Namespace)
}

// look reads the Deployment and the pods of its current template.
func (w *Waiter) look(ctx context.Context) (sight, error) {
	var deployments, replicaSets, pods struct{ Items []object }
	core, apps := "/api/v1/namespaces/"+w.Namespace, "/apis/apps/v1/namespaces/"+w.Namespace
	err := w.Get.JSON(ctx, apps+"/deployments", &deployments)
	if err == nil {
		err = w.Get.JSON(ctx, apps+"/replicasets", &replicaSets)
	}
	if err == nil {
		err = w.Get.JSON(ctx, core+"/pods", &pods)
	}
	if err != nil {
		return sight{}, fmt.Errorf("look for deployment %s: %w", w.Name, err)
	}
	for _, each := range deployments.Items {
		if each.Metadata.Name == w.Name {
			return judge(each, currentPods(each, replicaSets.Items, pods.Items)), nil
		}
	}
	return sight{}, fmt.Errorf("namespace %s has no deployment %s: `make deploy` creates it", w.Namespace, w.Name)
}

// lastWords returns the last line that a crashed container logged, as the end of an error, or "".
func (w *Waiter) lastWords(ctx context.Context, crashed container) string {
	if crashed.pod == "" {
		return ""
	}
	line, err := w.Get(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/log?container=%s&previous=true&tailLines=1", w.Namespace, crashed.pod, crashed.name))
	if err != nil || len(line) == 0 {
		return ""
	}
	return "; its last message: " + firstLine(string(line))
}

// Package rollout waits until a Deployment has replaced its pods, and gives up at once when one of the new pods
// can't start: a missing image is told in seconds, not after the time limit.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// interval is the time between two looks.
	interval = 500 * time.Millisecond
	// patience is how long trouble must last to count: a Secret may arrive a moment after the pods,
	// and kubelet tries again what may pass.
	patience = 5 * time.Second
	// revisionAnnotation tells which ReplicaSet belongs to the Deployment's current template.
	revisionAnnotation = "deployment.kubernetes.io/revision"
)

// Waiter waits for one Deployment.
type Waiter struct {
	Client kubernetes.Interface
	Key    types.NamespacedName
	// Limit bounds the wait.
	Limit time.Duration
	// Out receives a line whenever the number of pods that are ready changes.
	Out io.Writer
}

// Wait returns when all of the Deployment's pods are new and ready. Fails with one line that says what is wrong and
// what to do when a pod can't start, when the limit is over, and when there is no such Deployment.
func (w *Waiter) Wait(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, w.Limit)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var told string
	var since time.Time
	for {
		seen, err := w.look(limited)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("interrupted: the rollout of %s goes on in the cluster", w.Key)
		case limited.Err() != nil:
			return w.late(seen)
		case err != nil:
			return err
		}
		if seen.progress != told {
			fmt.Fprintln(w.Out, seen.progress)
			told = seen.progress
		}
		if seen.done {
			return nil
		}
		if seen.trouble == "" {
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		}
		if !since.IsZero() && time.Since(since) >= patience {
			return errors.New(seen.trouble + w.lastWords(ctx, seen.crashed))
		}
		select {
		case <-limited.Done():
		case <-ticker.C:
		}
	}
}

// late is the error for a rollout that takes too long.
func (w *Waiter) late(seen sight) error {
	reason := seen.waiting
	if seen.trouble != "" {
		reason = seen.trouble
	}
	if reason == "" {
		reason = "its pods are not ready"
	}
	return fmt.Errorf("the rollout of deployment %s is not done after %s: %s; see `kubectl --namespace=%s describe pods`", w.Key, w.Limit, reason, w.Key.Namespace)
}

// look reads the Deployment and the pods of its current template.
func (w *Waiter) look(ctx context.Context) (sight, error) {
	deployment, err := w.Client.AppsV1().Deployments(w.Key.Namespace).Get(ctx, w.Key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return sight{}, fmt.Errorf("there is no deployment %s: `make deploy` makes it", w.Key)
	}
	if err != nil {
		return sight{}, fmt.Errorf("get deployment %s: %w", w.Key, err)
	}
	pods, err := w.currentPods(ctx, deployment)
	if err != nil {
		return sight{}, err
	}
	return judge(deployment, pods), nil
}

// currentPods leaves out those of earlier templates: that they can't start may be the reason for the new one.
func (w *Waiter) currentPods(ctx context.Context, deployment *appsv1.Deployment) ([]corev1.Pod, error) {
	selector := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(deployment.Spec.Selector)}
	replicaSets, err := w.Client.AppsV1().ReplicaSets(deployment.Namespace).List(ctx, selector)
	if err != nil {
		return nil, fmt.Errorf("list the replicasets of deployment %s: %w", w.Key, err)
	}
	var current types.UID
	for _, replicaSet := range replicaSets.Items {
		if metav1.IsControlledBy(&replicaSet, deployment) && replicaSet.Annotations[revisionAnnotation] == deployment.Annotations[revisionAnnotation] {
			current = replicaSet.UID
		}
	}
	pods, err := w.Client.CoreV1().Pods(deployment.Namespace).List(ctx, selector)
	if err != nil {
		return nil, fmt.Errorf("list the pods of deployment %s: %w", w.Key, err)
	}
	var found []corev1.Pod
	for _, pod := range pods.Items {
		owner := metav1.GetControllerOf(&pod)
		if owner != nil && owner.UID == current && pod.DeletionTimestamp == nil {
			found = append(found, pod)
		}
	}
	return found, nil
}

// lastWords is the last line that a crashed container has logged.
func (w *Waiter) lastWords(ctx context.Context, crashed container) string {
	if crashed.pod == "" {
		return ""
	}
	options := &corev1.PodLogOptions{Container: crashed.name, Previous: true, TailLines: new(int64(1))}
	line, err := w.Client.CoreV1().Pods(w.Key.Namespace).GetLogs(crashed.pod, options).DoRaw(ctx)
	if err != nil || len(line) == 0 {
		return ""
	}
	return fmt.Sprintf("; its last message: %s", firstLine(string(line)))
}

package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// writers is how many resources are created at the same time.
	writers = 10
	// stallTimeout bounds how long no further resource converges.
	stallTimeout = 2 * time.Minute
)

// convergence is when resources were created and when they had converged.
type convergence struct {
	began, created time.Time
	// begun is when the creation of each resource began, by its number less one.
	begun []time.Time
	// converged is the time of each that has, by its name; missing says what the others lack.
	converged map[string]time.Time
	missing   map[string]string
	last      time.Time
}

// converge creates the resources and returns when all have converged.
func (g *ground) converge(ctx context.Context, running *operator, resources int) (*convergence, error) {
	seen, err := g.watch(ctx)
	if err != nil {
		return nil, err
	}
	defer seen.Stop()
	c := &convergence{
		began: time.Now(), begun: make([]time.Time, resources),
		converged: map[string]time.Time{}, missing: map[string]string{},
	}
	ctx, cancel := context.WithCancel(ctx)
	created := make(chan error, 1)
	go func() { created <- g.createAll(ctx, c) }()
	err = c.follow(ctx, running, seen, created)
	cancel() // ends the writers if an error has come before them
	if err != nil {
		return nil, err
	}
	return c, nil
}

// createAll creates the resources with several writers.
func (g *ground) createAll(ctx context.Context, c *convergence) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range c.begun {
		group.Go(func() error {
			c.begun[i] = time.Now()
			return g.create(ctx, g.plan.object(i+1))
		})
	}
	return group.Wait()
}

// follow takes in the watch's events until all resources are created and have converged.
func (c *convergence) follow(ctx context.Context, running *operator, seen watch.Interface, created <-chan error) error {
	stall := time.NewTimer(stallTimeout)
	defer stall.Stop()
	for c.created.IsZero() || len(c.converged) < len(c.begun) {
		select {
		case event, open := <-seen.ResultChan():
			if !open {
				return errors.Join(context.Cause(ctx), errors.New("the watch of the resources has ended"))
			}
			if c.take(event) {
				stall.Reset(stallTimeout)
			}
		case err := <-created:
			if err != nil {
				return err
			}
			c.created = time.Now()
		case <-running.ended:
			return running.failed()
		case <-stall.C:
			return c.stalled()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// take notes an event and tells whether it made a resource converge.
func (c *convergence) take(event watch.Event) bool {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Bookmark {
		return false
	}
	name := object.GetName()
	if _, done := c.converged[name]; done {
		return false
	}
	if missing := unmet(object); missing != "" {
		c.missing[name] = missing
		return false
	}
	delete(c.missing, name)
	c.last = time.Now()
	c.converged[name] = c.last
	return true
}

// stalled is the error that names one resource and what it lacks.
func (c *convergence) stalled() error {
	for name, missing := range c.missing {
		return fmt.Errorf("%d of %d resources have converged, and none for %s; %s is not: %s", len(c.converged), len(c.begun), stallTimeout, name, missing)
	}
	return fmt.Errorf("%d of %d resources have converged, and none for %s", len(c.converged), len(c.begun), stallTimeout)
}

// latencies are from the beginning of a resource's creation until it had converged.
func (c *convergence) latencies(p *plan) []time.Duration {
	latencies := make([]time.Duration, len(c.begun))
	for i, begun := range c.begun {
		latencies[i] = c.converged[p.object(i+1).GetName()].Sub(begun)
	}
	return latencies
}

// unmet says what a resource lacks to have converged, "" if nothing.
func unmet(object *unstructured.Unstructured) string {
	result, err := status.Compute(object)
	if err != nil {
		return err.Error()
	}
	if result.Status != status.CurrentStatus {
		return fmt.Sprintf("kstatus calls it %s: %s", result.Status, result.Message)
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		kind, _ := condition["type"].(string)
		observed, noted := condition["observedGeneration"].(int64)
		outdated := noted && observed != object.GetGeneration()
		if (kind == "Ready" || kind == "Available") && condition["status"] == string(metav1.ConditionTrue) && !outdated {
			return ""
		}
	}
	return "no condition Ready or Available is True for its present generation"
}

// watch follows the resources from now on, over interruptions.
func (g *ground) watch(ctx context.Context) (watch.Interface, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(g.plan.object(1).GroupVersionKind())
	if err := g.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the resources: %w", err)
	}
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return g.client.Watch(ctx, list.DeepCopy(), &client.ListOptions{Namespace: namespace, Raw: &options})
	}}
	seen, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), source)
	if err != nil {
		return nil, fmt.Errorf("watch the resources: %w", err)
	}
	return seen, nil
}

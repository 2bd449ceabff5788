package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// writers is how many writers create or delete objects at the same time.
	writers = 10
	// stallTimeout is how long to wait for the next object to converge.
	stallTimeout = 2 * time.Minute
)

// load is a number of objects that several writers create at the same time.
type load struct {
	// sets are the objects. One writer creates all objects of a set, one after another.
	sets [][]*unstructured.Unstructured
	// unmet says why an object has not converged, or returns "" if it has.
	unmet func(*unstructured.Unstructured) string
}

// resources returns a load of this many resources, each in a set of its own.
func (p *plan) resources(number int) load {
	sets := make([][]*unstructured.Unstructured, number)
	for i := range sets {
		sets[i] = []*unstructured.Unstructured{p.object(i + 1)}
	}
	return load{sets: sets, unmet: unmet}
}

func (l load) objects() []*unstructured.Unstructured { return slices.Concat(l.sets...) }

// convergence records when the objects of a load were created and when they had converged.
type convergence struct {
	load
	began, created time.Time
	// begun is when the creation of each set began.
	begun []time.Time
	// converged has the time for each object that has converged; missing has the reason for each object that has not.
	converged map[objectKey]time.Time
	missing   map[objectKey]string
	last      time.Time
}

// objectKey identifies an object of a load. It needs no namespace, because all objects of a load are in the same one.
type objectKey struct{ kind, name string }

func keyOf(object *unstructured.Unstructured) objectKey {
	return objectKey{kind: object.GetKind(), name: object.GetName()}
}

func newConvergence(l load) *convergence {
	c := &convergence{
		load: l, began: time.Now(), begun: make([]time.Time, len(l.sets)),
		converged: map[objectKey]time.Time{}, missing: map[objectKey]string{},
	}
	for _, object := range l.objects() {
		c.missing[keyOf(object)] = "no event about it has arrived"
	}
	return c
}

// converge creates the objects and waits until all have converged. It fails if the operator ends, or if no object
// converges for stallTimeout. The operator is nil if none is running.
func (g *ground) converge(ctx context.Context, running *operator, l load) (*convergence, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the watches and, after an error, the writers
	seen, err := g.watch(ctx, l.objects())
	if err != nil {
		return nil, err
	}
	c := newConvergence(l)
	created := make(chan error, 1)
	go func() { created <- g.createAll(ctx, c) }()
	if err := c.follow(ctx, running, seen, created); err != nil {
		return nil, err
	}
	return c, nil
}

func (g *ground) createAll(ctx context.Context, c *convergence) error {
	return inParallel(ctx, c.sets, func(ctx context.Context, i int, set []*unstructured.Unstructured) error {
		c.begun[i] = time.Now()
		for _, object := range set {
			if err := g.create(ctx, object.DeepCopy()); err != nil {
				return err
			}
		}
		return nil
	})
}

// inParallel calls do for every item. Each writer takes the next item as soon as it has finished one.
func inParallel[T any](ctx context.Context, items []T, do func(context.Context, int, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i, item := range items {
		group.Go(func() error { return do(ctx, i, item) })
	}
	return group.Wait()
}

// follow reads the events of the watches until all objects are created and have converged.
func (c *convergence) follow(ctx context.Context, running *operator, seen <-chan watch.Event, created <-chan error) error {
	var ended <-chan struct{}
	if running != nil {
		ended = running.ended
	}
	stall := time.NewTimer(stallTimeout)
	defer stall.Stop()
	for c.created.IsZero() || len(c.missing) > 0 {
		select {
		case event := <-seen:
			if event.Type == watch.Error {
				return fmt.Errorf("watch the objects: %w", apierrors.FromObject(event.Object))
			}
			if c.take(event) {
				stall.Reset(stallTimeout)
			}
		case err := <-created:
			if err != nil {
				return err
			}
			c.created = time.Now()
		case <-ended:
			return running.failed()
		case <-stall.C:
			return c.stalled()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// take records an event. It reports whether the event's object is part of the load and has now converged for the first
// time.
func (c *convergence) take(event watch.Event) bool {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Bookmark {
		return false
	}
	key := keyOf(object)
	if _, awaited := c.missing[key]; !awaited {
		return false
	}
	if missing := c.unmet(object); missing != "" {
		c.missing[key] = missing
		return false
	}
	delete(c.missing, key)
	c.last = time.Now()
	c.converged[key] = c.last
	return true
}

// stalled returns an error that names one object and says why it has not converged.
func (c *convergence) stalled() error {
	progress := fmt.Sprintf("%d of %d objects have converged, none of them in the last %s", len(c.converged), len(c.objects()), stallTimeout)
	for key, missing := range c.missing {
		return fmt.Errorf("%s; %s %s has not: %s", progress, key.kind, key.name, missing)
	}
	return errors.New(progress)
}

// took returns the time from the first creation until the last object had converged.
func (c *convergence) took() time.Duration { return c.last.Sub(c.began) }

// latencies returns, for each set, the time from the start of its creation until all of its objects had converged.
func (c *convergence) latencies() []time.Duration {
	latencies := make([]time.Duration, len(c.sets))
	for i, set := range c.sets {
		for _, object := range set {
			latencies[i] = max(latencies[i], c.converged[keyOf(object)].Sub(c.begun[i]))
		}
	}
	return latencies
}

// notCurrent says why an object is not Current according to kstatus, or returns "" if it is.
func notCurrent(object *unstructured.Unstructured) string {
	result, err := status.Compute(object)
	if err != nil {
		return err.Error()
	}
	if result.Status != status.CurrentStatus {
		return fmt.Sprintf("kstatus calls it %s: %s", result.Status, result.Message)
	}
	return ""
}

// unmet says why a resource has not converged, or returns "" if it has.
func unmet(object *unstructured.Unstructured) string {
	if missing := notCurrent(object); missing != "" {
		return missing
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
	return "no condition Ready or Available is True for its current generation"
}

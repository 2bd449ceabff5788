package load

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watch watches the kinds of the given objects until ctx ends. It resumes a watch that was interrupted.
func (g *ground) watch(ctx context.Context, objects []*unstructured.Unstructured) (<-chan watch.Event, error) {
	kinds := sets.New[schema.GroupVersionKind]()
	for _, object := range objects {
		kinds.Insert(object.GroupVersionKind())
	}
	events := make(chan watch.Event)
	for kind := range kinds {
		seen, err := g.watchKind(ctx, kind)
		if err != nil {
			return nil, err
		}
		go forward(ctx, seen, events)
	}
	return events, nil
}

func (g *ground) watchKind(ctx context.Context, kind schema.GroupVersionKind) (watch.Interface, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	if err := g.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list each %s: %w", kind.Kind, err)
	}
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return g.client.Watch(ctx, list.DeepCopy(), &client.ListOptions{Namespace: namespace, Raw: &options})
	}}
	seen, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), source)
	if err != nil {
		return nil, fmt.Errorf("watch each %s: %w", kind.Kind, err)
	}
	return seen, nil
}

// forward passes on the events of one watch. If the watch ends before ctx does, its last event says why.
func forward(ctx context.Context, seen watch.Interface, events chan<- watch.Event) {
	defer seen.Stop()
	for event := range seen.ResultChan() {
		select {
		case events <- event:
		case <-ctx.Done():
			return
		}
	}
}

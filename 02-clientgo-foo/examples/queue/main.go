//workshop:given 2.3

// Command queue is a controller that changes nothing: handlers queue the keys of Foos, and a worker looks each Foo
// up. While a Foo has the annotation "fail", its sync fails. Ctrl-C ends the program.
package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/operator-workshop/02-clientgo-foo/examples/internal/example"
	clientset "example.com/operator-workshop/02-clientgo-foo/pkg/generated/clientset/versioned"
	informers "example.com/operator-workshop/02-clientgo-foo/pkg/generated/informers/externalversions"
	listers "example.com/operator-workshop/02-clientgo-foo/pkg/generated/listers/example/v1alpha1"
)

func main() { example.Main(work) }

func work(ctx context.Context, cluster example.Cluster, _ []string) error {
	clients, err := clientset.NewForConfig(cluster.Config)
	if err != nil {
		return fmt.Errorf("make a clientset: %w", err)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	add := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			queue.Add(key)
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(cluster.Namespace))
	defer factory.Shutdown()
	foos := factory.Example().V1alpha1().Foos()
	handler, err := foos.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, object any) { add(object) },
		DeleteFunc: add,
	})
	if err != nil {
		return fmt.Errorf("register an event handler: %w", err)
	}
	factory.StartWithContext(ctx)
	if !cache.WaitFor(ctx, "", handler.HasSyncedChecker()) {
		return nil // Ctrl-C came first
	}
	fmt.Println("The cache is filled. Keys in the queue:", queue.Len())

	context.AfterFunc(ctx, queue.ShutDown)
	for processNext(queue, foos.Lister()) {
	}
	return nil
}

// processNext works on one key. It returns false once the queue is shut down and empty.
func processNext(queue workqueue.TypedRateLimitingInterface[cache.ObjectName], foos listers.FooLister) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	if err := sync(foos, key); err != nil {
		queue.AddRateLimited(key)
		fmt.Printf("%s: failure %d: %v\n", key, queue.NumRequeues(key), err)
		return true
	}
	queue.Forget(key)
	return true
}

// sync looks at one Foo. A controller would act here.
func sync(foos listers.FooLister, key cache.ObjectName) error {
	foo, err := foos.Foos(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		fmt.Printf("%s: gone\n", key)
		return nil
	}
	if err != nil {
		return fmt.Errorf("get Foo %s: %w", key, err)
	}
	if reason, found := foo.Annotations["fail"]; found {
		return fmt.Errorf("the annotation says %s", reason)
	}
	fmt.Printf("%s: wants %d replicas\n", key, foo.Spec.Replicas)
	return nil
}

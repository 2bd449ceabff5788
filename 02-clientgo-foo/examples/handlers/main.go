// Command handlers is the beginning of a controller: it prints a line when a Foo
// appears and when one is deleted, until you press Ctrl-C.
package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/cache"

	"example.com/operator-workshop/02-clientgo-foo/examples/internal/example"
	clientset "example.com/operator-workshop/02-clientgo-foo/pkg/generated/clientset/versioned"
	informers "example.com/operator-workshop/02-clientgo-foo/pkg/generated/informers/externalversions"
)

func main() { example.Main(watchFoos) }

func watchFoos(ctx context.Context, cluster example.Cluster, _ []string) error {
	clients, err := clientset.NewForConfig(cluster.Config)
	if err != nil {
		return fmt.Errorf("make a clientset: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(cluster.Namespace))
	defer factory.Shutdown()
	handler, err := factory.Example().V1alpha1().Foos().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { say("added", object) },
		DeleteFunc: func(object any) { say("deleted", object) },
	})
	if err != nil {
		return fmt.Errorf("register an event handler: %w", err)
	}
	factory.StartWithContext(ctx)
	if !cache.WaitFor(ctx, "", handler.HasSyncedChecker()) {
		return nil // Ctrl-C came first
	}
	fmt.Println("The cache is filled.")
	<-ctx.Done()
	return nil
}

// say prints what happened, and the object's key. After a deletion, object may be a tombstone;
// DeletionHandlingObjectToName accepts that, too.
func say(what string, object any) {
	key, err := cache.DeletionHandlingObjectToName(object)
	if err != nil {
		fmt.Println(what, "something without a name:", err)
		return
	}
	fmt.Println(what, key)
}

// Command informer keeps a copy of all ConfigMaps of a namespace, and prints what
// happens to them, until you press Ctrl-C.
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"example.com/operator-workshop/02-clientgo-foo/examples/internal/example"
)

func main() { example.Main(watchConfigMaps) }

//workshop:step 2.2
func watchConfigMaps(ctx context.Context, cluster example.Cluster, _ []string) error {
	clientset, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		return fmt.Errorf("make a clientset: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace(cluster.Namespace))
	defer factory.Shutdown()
	configMaps := factory.Core().V1().ConfigMaps()
	handler, err := configMaps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { fmt.Println("added", cache.MetaObjectToName(object.(*corev1.ConfigMap))) },
		UpdateFunc: func(_, object any) { fmt.Println("updated", cache.MetaObjectToName(object.(*corev1.ConfigMap))) },
		DeleteFunc: func(object any) {
			key, _ := cache.DeletionHandlingObjectToName(object)
			fmt.Println("deleted", key)
		},
	})
	if err != nil {
		return fmt.Errorf("register an event handler: %w", err)
	}
	factory.StartWithContext(ctx)
	if !cache.WaitFor(ctx, "", handler.HasSyncedChecker()) {
		return nil // Ctrl-C came first
	}

	// The lister reads the cache and sends no request.
	copies, err := configMaps.Lister().List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list the copies: %w", err)
	}
	fmt.Println("The cache is filled. ConfigMaps in it:", len(copies))
	<-ctx.Done()
	return nil
}

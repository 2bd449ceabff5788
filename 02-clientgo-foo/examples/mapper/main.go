// Command mapper looks up the kind that belongs to the name of a resource, such as
// deployments, and lists its objects without knowing their Go type.
package main

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"example.com/operator-workshop/02-clientgo-foo/examples/internal/example"
)

func main() { example.Main(explain) }

func explain(ctx context.Context, cluster example.Cluster, arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("name one resource, such as deployments")
	}
	mapping, err := find(ctx, cluster, arguments[0])
	if err != nil {
		return err
	}
	fmt.Println("resource:", mapping.Resource)
	fmt.Println("kind:    ", mapping.GroupVersionKind)

	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = client.Resource(mapping.Resource).Namespace(cluster.Namespace)
	}
	objects, err := resource.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list %s: %w", mapping.Resource.Resource, err)
	}
	for _, object := range objects.Items {
		fmt.Println("object:  ", object.GetName())
	}
	return nil
}

// find asks the API server which resources it has, and looks for the name among them.
func find(ctx context.Context, cluster example.Cluster, name string) (*meta.RESTMapping, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResourcesWithContext(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("ask for the API's resources: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	kind, err := mapper.KindFor(schema.GroupVersionResource{Resource: name})
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the API server has no resource %q", name)
	}
	if err != nil {
		return nil, fmt.Errorf("find the kind of %s: %w", name, err)
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", kind, err)
	}
	return mapping, nil
}

// Command foos lists the Foos of a namespace with the generated clientset.
package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/02-clientgo-foo/examples/internal/example"
	clientset "example.com/operator-workshop/02-clientgo-foo/pkg/generated/clientset/versioned"
)

func main() { example.Main(listFoos) }

//workshop:step 2.6
func listFoos(ctx context.Context, cluster example.Cluster, _ []string) error {
	clients, err := clientset.NewForConfig(cluster.Config)
	if err != nil {
		return fmt.Errorf("make a clientset: %w", err)
	}
	foos, err := clients.ExampleV1alpha1().Foos(cluster.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list Foos: %w", err)
	}
	for _, foo := range foos.Items {
		fmt.Println(foo.Name, "wants", foo.Spec.Replicas, "replicas in Deployment", foo.Spec.DeploymentName)
	}
	return nil
}

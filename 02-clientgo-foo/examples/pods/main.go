// Command pods lists the pods of a namespace: the smallest useful program with
// client-go.
package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/operator-workshop/02-clientgo-foo/examples/internal/example"
)

func main() { example.Main(listPods) }

//workshop:step 2.1
func listPods(ctx context.Context, cluster example.Cluster, _ []string) error {
	clientset, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		return fmt.Errorf("make a clientset: %w", err)
	}
	pods, err := clientset.CoreV1().Pods(cluster.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for _, pod := range pods.Items {
		fmt.Println(pod.Name, pod.Status.Phase)
	}
	return nil
}

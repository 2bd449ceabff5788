package controlplane_test

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/controlplane/install"
)

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// The Deployment has 1 available pod.
	// The namespace is gone.
}

func run(ctx context.Context) error {
	plane, err := controlplane.Start(ctx, controlplane.Options{Install: install.CRDs("testdata/crd")})
	if err != nil {
		return err
	}
	defer plane.Stop()
	config, err := install.Config(plane) // a *rest.Config of the administrator
	if err != nil {
		return err
	}
	return runOperator(ctx, config) // your own function
}

// runOperator does what envtest can't: it waits until a Deployment's pod is available, and until a namespace is gone.
func runOperator(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	namespaces, deployments := client.CoreV1().Namespaces(), client.AppsV1().Deployments("demo")
	if _, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := deployments.Create(ctx, webDeployment(), metav1.CreateOptions{}); err != nil {
		return err
	}
	const interval = 20 * time.Millisecond
	err = wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		deployment, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		return err == nil && deployment.Status.AvailableReplicas == 1, err
	})
	if err != nil {
		return fmt.Errorf("wait for the pod: %w", err)
	}
	fmt.Println("The Deployment has 1 available pod.")
	if err := namespaces.Delete(ctx, "demo", metav1.DeleteOptions{}); err != nil {
		return err
	}
	err = wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		_, err := namespaces.Get(ctx, "demo", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("wait for the end of the namespace: %w", err)
	}
	fmt.Println("The namespace is gone.")
	return nil
}

func webDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.com/web:1.0"}}},
			},
		},
	}
}

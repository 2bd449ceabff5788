package install_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/controlplane/install"
)

func ExampleManifests() {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	fmt.Println(runWithWebhooks(ctx))
	// Output: admission webhook "configmaps.test.example.com" denied the request: not today
}

func runWithWebhooks(ctx context.Context) error {
	manifests := &install.Manifests{CRDs: []string{"testdata/crd"}, Webhooks: []string{"testdata/webhooks"}}
	plane, err := controlplane.Start(ctx, controlplane.Options{Install: manifests.Install})
	if err != nil {
		return err
	}
	defer plane.Stop()
	server := webhook.NewServer(webhook.Options{
		Host: manifests.Serving.Host, Port: manifests.Serving.Port, CertDir: manifests.Serving.CertDir,
	})
	return runOperator(ctx, plane, server) // your own function
}

// runOperator serves a webhook that denies all requests, and tries to create a ConfigMap.
func runOperator(ctx context.Context, plane *controlplane.ControlPlane, server webhook.Server) error {
	server.Register("/refuse", &webhook.Admission{Handler: admission.HandlerFunc(
		func(context.Context, admission.Request) admission.Response { return admission.Denied("not today") })})
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	err := createConfigMap(ctx, plane, server)
	stop()
	return errors.Join(err, <-ended)
}

func createConfigMap(ctx context.Context, plane *controlplane.ControlPlane, server webhook.Server) error {
	serves := func(context.Context) (bool, error) { return server.StartedChecker()(&http.Request{}) == nil, nil }
	if err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, serves); err != nil {
		return err
	}
	config, err := install.Config(plane)
	if err != nil {
		return err
	}
	writer, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	return writer.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: metav1.NamespaceDefault}})
}

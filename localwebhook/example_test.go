package localwebhook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"example.com/operator-workshop/localwebhook"
)

// A shortened version of the main.go that kubebuilder scaffolds, with webhooks that work in `make run`. Use a Local
// only if a flag asks for it: in a cluster, the webhook server reads its certificate from files, and the manifests
// register the webhooks.
func Example() {
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}

func run(ctx context.Context) error {
	local, err := localwebhook.New("127.0.0.1:9443")
	if err != nil {
		return err
	}
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: 9443, TLSOpts: []func(*tls.Config){local.UseCertificate}})
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{WebhookServer: server})
	if err != nil {
		return err
	}
	// Here you set up the controllers and webhooks, for example with SetupGuestbookWebhookWithManager(mgr).

	// This file, which `make manifests` writes, contains the mutating configuration, and then the validating one.
	manifests, err := os.Open("config/webhook/manifests.yaml")
	if err != nil {
		return err
	}
	defer manifests.Close()
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	documents := yaml.NewYAMLOrJSONDecoder(manifests, 4096)
	if err := errors.Join(documents.Decode(mutating), documents.Decode(validating)); err != nil {
		return err
	}
	if err := local.SetupWithManager(mgr, mutating, validating, "guestbooks.webapp.my.domain"); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

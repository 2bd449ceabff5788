package manager

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"example.com/operator-workshop/05-webhook-password/internal/serving"
	"example.com/operator-workshop/05-webhook-password/internal/webhook"
)

// The names of what config/ makes, for the certificates that the process keeps in a Secret.
const (
	podNamespace      = "POD_NAMESPACE"
	certificateSecret = "webhook-server-cert"
	webhookService    = "password-operator-webhook-service"
	mutatingName      = "password-operator-mutating-webhook-configuration"
	validatingName    = "password-operator-validating-webhook-configuration"
)

// Webhooks serves webhooks in one of the ways that there are. The zero value serves none.
type Webhooks struct {
	// server is nil if none are served.
	server ctrlwebhook.Server
	setup  func(mgr ctrl.Manager, register func(ctrl.Manager) error) error
}

// NewWebhooks prepares what the options say. Nothing is contacted yet.
func NewWebhooks(options Options, getenv func(string) string) (Webhooks, error) {
	if !options.Webhooks.Enabled {
		return Webhooks{}, nil
	}
	switch options.Webhooks.Certs {
	case CertsLocal:
		return localWebhooks(options)
	case CertsRotated:
		return rotatedWebhooks(options, getenv(podNamespace))
	}
	return fileWebhooks(options)
}

// Server is nil if no webhooks are served. The manager needs it at its birth.
func (w Webhooks) Server() ctrlwebhook.Server { return w.server }

// SetupWithManager has the manager serve what register adds to its webhook server.
func (w Webhooks) SetupWithManager(mgr ctrl.Manager, register func(ctrl.Manager) error) error {
	if w.server == nil {
		return nil
	}
	return w.setup(mgr, register)
}

func newServer(options Options, server ctrlwebhook.Options) ctrlwebhook.Server {
	server.TLSOpts = append(server.TLSOpts, options.tlsOptions()...)
	return webhook.Strict(ctrlwebhook.NewServer(server))
}

func localWebhooks(options Options) (Webhooks, error) {
	local, err := serving.NewLocal(serving.LocalOptions{Address: options.Webhooks.BindAddress, Validity: options.Webhooks.Validity})
	if err != nil {
		return Webhooks{}, fmt.Errorf("prepare local webhooks: %w", err)
	}
	setup := func(mgr ctrl.Manager, register func(ctrl.Manager) error) error {
		return errors.Join(local.SetupWithManager(mgr), register(mgr))
	}
	return Webhooks{server: newServer(options, local.ServerOptions()), setup: setup}, nil
}

func fileWebhooks(options Options) (Webhooks, error) {
	server, err := options.Webhooks.serverOptions()
	if err != nil {
		return Webhooks{}, err
	}
	setup := func(mgr ctrl.Manager, register func(ctrl.Manager) error) error {
		return errors.Join(mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker()), register(mgr))
	}
	return Webhooks{server: newServer(options, server), setup: setup}, nil
}

func rotatedWebhooks(options Options, namespace string) (Webhooks, error) {
	if namespace == "" {
		return Webhooks{}, fmt.Errorf("--webhook-certs=%s: set %s to the namespace of the Secret %s", CertsRotated, podNamespace, certificateSecret)
	}
	server, err := options.Webhooks.serverOptions()
	if err != nil {
		return Webhooks{}, err
	}
	rotated := serving.Rotated{
		Secret:   types.NamespacedName{Namespace: namespace, Name: certificateSecret},
		CertDir:  server.CertDir,
		CertName: server.CertName, KeyName: server.KeyName,
		DNSNames: []string{
			fmt.Sprintf("%s.%s.svc", webhookService, namespace),
			fmt.Sprintf("%s.%s.svc.cluster.local", webhookService, namespace),
		},
		Validating: validatingName, Mutating: mutatingName,
	}
	return Webhooks{server: newServer(options, server), setup: rotated.SetupWithManager}, nil
}

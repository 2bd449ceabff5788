package serving

import (
	"crypto/tls"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"example.com/operator-workshop/manager"
)

// The names of what config/ makes, for the certificates that the process keeps in a Secret.
const (
	podNamespace      = "POD_NAMESPACE"
	certificateSecret = "webhook-server-cert"
	webhookService    = "password-operator-webhook-service"
	mutatingName      = "password-operator-mutating-webhook-configuration"
	validatingName    = "password-operator-validating-webhook-configuration"
)

// setup has the manager serve what register adds to its webhook server.
type setup func(mgr ctrl.Manager, register func(ctrl.Manager) error) error

// Webhooks serves webhooks in the way that [Options] say. The zero value serves none.
type Webhooks struct {
	// server is nil if none are served.
	server ctrlwebhook.Server
	setup  setup
}

// NewWebhooks prepares what the options say. Nothing is contacted yet. The server takes the
// TLS options of the other servers of the process.
func NewWebhooks(options Options, tlsOpts []func(*tls.Config), getenv func(string) string) (Webhooks, error) {
	if !options.Enabled {
		return Webhooks{}, nil
	}
	server, setup, err := options.prepare(getenv)
	if err != nil {
		return Webhooks{}, err
	}
	server.TLSOpts = append(server.TLSOpts, tlsOpts...)
	return Webhooks{server: ctrlwebhook.NewServer(server), setup: setup}, nil
}

// Server is nil if no webhooks are served. The options of the manager take it.
func (w Webhooks) Server() ctrlwebhook.Server { return w.server }

// SetupWithManager has the manager serve what register adds to its webhook server.
func (w Webhooks) SetupWithManager(mgr ctrl.Manager, register func(ctrl.Manager) error) error {
	if w.server == nil {
		return nil
	}
	return w.setup(mgr, register)
}

// AddProbes makes the manager serve /healthz and /readyz.
//
// A process with webhooks is ready once it serves them, which SetupWithManager checks; its
// caches don't count. To list Passwords that are stored as v1alpha1, the API server must convert them
// through a Service that leads to ready pods only: if every pod waited for its caches, none would ever
// become ready.
func (w Webhooks) AddProbes(mgr ctrl.Manager) error {
	if w.server == nil {
		return manager.AddProbes(mgr)
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return fmt.Errorf("add the health check: %w", err)
	}
	return nil
}

func (o *Options) prepare(getenv func(string) string) (ctrlwebhook.Options, setup, error) {
	switch o.Certs {
	case CertsLocal:
		return o.prepareLocal()
	case CertsRotated:
		return o.prepareRotated(getenv(podNamespace))
	}
	return o.prepareFiles()
}

func (o *Options) prepareLocal() (ctrlwebhook.Options, setup, error) {
	local, err := NewLocal(LocalOptions{Address: o.BindAddress, Validity: o.Validity})
	if err != nil {
		return ctrlwebhook.Options{}, nil, fmt.Errorf("prepare local webhooks: %w", err)
	}
	return local.ServerOptions(), func(mgr ctrl.Manager, register func(ctrl.Manager) error) error {
		return errors.Join(local.SetupWithManager(mgr), register(mgr))
	}, nil
}

func (o *Options) prepareFiles() (ctrlwebhook.Options, setup, error) {
	server, err := o.serverOptions()
	return server, func(mgr ctrl.Manager, register func(ctrl.Manager) error) error {
		return errors.Join(mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker()), register(mgr))
	}, err
}

func (o *Options) prepareRotated(namespace string) (ctrlwebhook.Options, setup, error) {
	if namespace == "" {
		return ctrlwebhook.Options{}, nil, fmt.Errorf("--webhook-certs=%s: set %s to the namespace of the Secret %s", CertsRotated, podNamespace, certificateSecret)
	}
	server, err := o.serverOptions()
	rotated := Rotated{
		Secret:   types.NamespacedName{Namespace: namespace, Name: certificateSecret},
		CertDir:  server.CertDir,
		CertName: server.CertName, KeyName: server.KeyName,
		DNSNames: []string{
			fmt.Sprintf("%s.%s.svc", webhookService, namespace),
			fmt.Sprintf("%s.%s.svc.cluster.local", webhookService, namespace),
		},
		Validating: validatingName, Mutating: mutatingName,
	}
	return server, rotated.SetupWithManager, err
}

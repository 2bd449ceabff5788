// Package serving serves webhooks. It decides which certificate they use, and how the API server learns of its CA.
//
// The API server calls webhooks over TLS only, and trusts the CA in caBundle, a field beside the webhook's address.
// The package supports three ways to make a certificate and to write its CA into caBundle:
//
//   - The package localwebhook does both, for an operator on your own machine.
//   - The library cert-controller does both, with a Secret in the cluster: see [Rotated].
//   - cert-manager does both, and this program only reads the files.
package serving

import (
	"crypto/tls"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"example.com/operator-workshop/localwebhook"
	"example.com/operator-workshop/manager"
)

// The names that config/ gives to the Service of the webhooks and to the Secret of their certificate.
const (
	webhookService    = "password-operator-webhook-service"
	certificateSecret = "webhook-server-cert"
)

// Webhooks serves webhooks as its [Options] say. The zero value serves none.
type Webhooks struct {
	options Options
	server  ctrlwebhook.Server
	// local is nil unless the options choose CertsLocal.
	local *localwebhook.Local
}

// NewWebhooks makes the webhook server, unless the options switch webhooks off. tlsOpts are the TLS options that all
// servers of the process share. The server does not listen yet.
func NewWebhooks(options Options, tlsOpts []func(*tls.Config)) (Webhooks, error) {
	if !options.Enabled {
		return Webhooks{}, nil
	}
	host, port, err := options.hostAndPort()
	if err != nil {
		return Webhooks{}, err
	}
	webhooks := Webhooks{options: options}
	if options.Certs == CertsLocal {
		if webhooks.local, err = localwebhook.New(options.BindAddress); err != nil {
			return Webhooks{}, err
		}
		tlsOpts = append([]func(*tls.Config){webhooks.local.UseCertificate}, tlsOpts...)
	}
	webhooks.server = ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host: host, Port: port, TLSOpts: tlsOpts,
		CertDir: options.CertPath, CertName: options.CertName, KeyName: options.KeyName,
	})
	return webhooks, nil
}

// Server returns the webhook server, for the options of the manager. It is nil if no webhooks are served.
func (w Webhooks) Server() ctrlwebhook.Server { return w.server }

// SetupWithManager makes the manager serve /healthz, /readyz, and the webhooks that register adds to the webhook
// server.
//
// A process with webhooks is ready as soon as it serves them (with CertsLocal, as soon as they are registered), whether
// or not its caches are filled. To list Passwords that are stored as v1alpha1, the API server has to convert them,
// through a Service that routes to ready pods only: if every pod waited for its caches, none would ever become ready.
func (w Webhooks) SetupWithManager(mgr ctrl.Manager, register func(ctrl.Manager) error) error {
	if w.server == nil {
		return manager.AddProbes(mgr)
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	switch w.options.Certs {
	case CertsLocal:
		return errors.Join(setupLocal(mgr, w.local), register(mgr))
	case CertsRotated:
		return w.options.rotated().SetupWithManager(mgr, w.server, register)
	}
	return errors.Join(mgr.AddReadyzCheck("webhooks", w.server.StartedChecker()), register(mgr))
}

func (o *Options) rotated() Rotated {
	return Rotated{
		Secret:  types.NamespacedName{Namespace: o.Namespace, Name: certificateSecret},
		CertDir: o.CertPath, CertName: o.CertName, KeyName: o.KeyName,
		DNSNames: []string{
			fmt.Sprintf("%s.%s.svc", webhookService, o.Namespace),
			fmt.Sprintf("%s.%s.svc.cluster.local", webhookService, o.Namespace),
		},
	}
}

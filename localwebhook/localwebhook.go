// Package localwebhook lets an API server call the webhooks of a manager that runs outside the cluster, such as an
// operator that `make run` or a debugger starts on your machine. It needs no cert-manager, no Service and no tunnel.
//
// In a cluster, the clientConfig of a webhook names a Service, and contains the CA of the webhook's certificate.
// Instead of the Service, the clientConfig can name a URL. So [Local] makes a certificate in memory and, while the
// manager is running, puts its own URL and CA into the webhook configurations and the CRDs. That requires an
// administrator's rights, and an API server that can reach the URL.
package localwebhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Local registers the webhooks of a manager under an address of this machine. Make one with [New].
type Local struct {
	address     string
	certificate tls.Certificate
	caBundle    []byte

	client         client.Client
	listening      healthz.Checker
	configurations []client.Object
	crds           []string
	registered     atomic.Bool
}

// New makes a Local with a certificate for the address at which the API server calls the webhooks, such as
// 127.0.0.1:9443. The certificate is valid for a year.
func New(address string) (*Local, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	caBundle, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	certificate, err := tls.X509KeyPair(caBundle, key)
	return &Local{address: address, certificate: certificate, caBundle: caBundle}, err
}

// UseCertificate is for the TLSOpts of the webhook server, which then reads no certificate from files.
func (l *Local) UseCertificate(config *tls.Config) {
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &l.certificate, nil }
}

// SetupWithManager makes the manager register webhooks when its webhook server listens, and report ready only once they
// are registered. With leader election, only the leader registers them and reports ready.
//
// mutating and validating may be nil. Each of their webhooks must name a Service with a path, as in the manifests that
// controller-gen writes; SetupWithManager replaces the Service with a URL. If the cluster already has a configuration
// with the name of mutating or validating, for instance that of a deployed operator, the manager deletes it, and
// doesn't restore it at the end.
//
// crds are the names of the CRDs whose versions the manager converts. At the end, the manager restores their former
// conversion; if the process is killed, the next process that converts them does so when it ends.
func (l *Local) SetupWithManager(mgr ctrl.Manager, mutating *admissionregistrationv1.MutatingWebhookConfiguration,
	validating *admissionregistrationv1.ValidatingWebhookConfiguration, crds ...string) (err error) {
	if mutating != nil {
		for i := range mutating.Webhooks {
			l.redirect(&mutating.Webhooks[i].ClientConfig)
		}
		l.configurations = append(l.configurations, mutating)
	}
	if validating != nil {
		for i := range validating.Webhooks {
			l.redirect(&validating.Webhooks[i].ClientConfig)
		}
		l.configurations = append(l.configurations, validating)
	}
	if err := apiextensionsv1.AddToScheme(mgr.GetScheme()); err != nil {
		return err
	}
	// The manager's own client reads from a cache, which would watch all CRDs of the cluster.
	l.client, err = client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient()})
	l.listening, l.crds = mgr.GetWebhookServer().StartedChecker(), crds
	return errors.Join(err, mgr.AddReadyzCheck("webhooks", l.ready), mgr.Add(manager.RunnableFunc(l.run)))
}

// redirect replaces the Service in a clientConfig with the URL and the CA of this process.
func (l *Local) redirect(config *admissionregistrationv1.WebhookClientConfig) {
	config.URL = new("https://" + l.address + *config.Service.Path)
	config.Service, config.CABundle = nil, l.caBundle
}

func (l *Local) ready(*http.Request) error {
	if !l.registered.Load() {
		return errors.New("the webhooks are not registered yet")
	}
	return nil
}

// run keeps the webhooks registered until ctx ends. Its deferred functions unregister them, even if run could register
// only some. The manager stops its webhook server only after that: the API server must not call webhooks that no longer
// answer.
func (l *Local) run(ctx context.Context) (err error) {
	listening := func(context.Context) (bool, error) { return l.listening(nil) == nil, nil }
	if wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, listening) != nil {
		return nil // the process ends, perhaps because the server can't listen
	}
	ending := context.WithoutCancel(ctx) // the manager waits for at most GracefulShutdownTimeout
	for _, configuration := range l.configurations {
		// A killed process may have left a configuration.
		if err := client.IgnoreNotFound(l.client.Delete(ctx, configuration)); err != nil {
			return fmt.Errorf("delete the old %s: %w", configuration.GetName(), err)
		}
		if err := l.client.Create(ctx, configuration); err != nil {
			return fmt.Errorf("create %s: %w", configuration.GetName(), err)
		}
		ours := client.Preconditions{UID: new(configuration.GetUID())}
		defer func() { err = errors.Join(err, ignoreChanged(l.client.Delete(ending, configuration, ours))) }()
	}
	for _, name := range l.crds {
		if err := l.changeCRD(ctx, name, l.takeConversion); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, client.IgnoreNotFound(l.changeCRD(ending, name, l.restoreConversion))) }()
	}
	l.registered.Store(true)
	ctrl.LoggerFrom(ctx).Info("Registered the webhooks", "address", l.address)
	<-ctx.Done()
	return nil
}

// ignoreChanged ignores the errors for configurations that someone else has replaced or removed since run wrote them.
func ignoreChanged(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

package serving

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// crdName is the CRD whose conversion webhook is served at convertPath, as controller-runtime does for every CRD.
	crdName     = "passwords.secret.example.com"
	convertPath = "/convert"

	listenInterval = 100 * time.Millisecond
	// unregisterTimeout is shorter than the manager's graceful shutdown.
	unregisterTimeout = 5 * time.Second
)

// manifests are the deployed webhook configurations under other names, so that a cluster can have both.
// `make manifests` writes the file.
//
//go:embed webhooks.yaml
var manifests []byte

// Local lets the API server call webhooks on this machine, for `make run`. It makes a self-signed certificate, and
// while the process runs, the webhook configurations and the CRD have this process's URL and that certificate.
type Local struct {
	address     string // host and port
	certificate tls.Certificate
	caBundle    []byte // in PEM

	client     client.Client
	listening  healthz.Checker
	registered atomic.Bool
	// oldConversion is what the CRD had before this process.
	oldConversion *crdConversion
}

type crdConversion = apiextensionsv1.CustomResourceConversion

var (
	_ manager.Runnable               = (*Local)(nil)
	_ manager.LeaderElectionRunnable = (*Local)(nil)
)

// NewLocal makes a certificate for an address, which is host and port as the API server calls them. It is valid for a
// year, and its keys are in memory only.
func NewLocal(address string) (*Local, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	bundle, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	certificate, err := tls.X509KeyPair(bundle, key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate for %s: %w", host, err)
	}
	return &Local{address: address, certificate: certificate, caBundle: bundle}, nil
}

// UseCertificate belongs to the TLSOpts of the webhook server, which then reads no certificate from files.
func (l *Local) UseCertificate(config *tls.Config) {
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &l.certificate, nil }
}

// SetupWithManager makes the manager register its webhook server, and be ready only when that is done.
func (l *Local) SetupWithManager(mgr ctrl.Manager) error {
	if err := apiextensionsv1.AddToScheme(mgr.GetScheme()); err != nil {
		return err
	}
	// The manager's own client reads from a cache, which would watch all CRDs of the cluster.
	uncached, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("make a client to register the webhooks: %w", err)
	}
	l.client, l.listening = uncached, mgr.GetWebhookServer().StartedChecker()
	return errors.Join(mgr.AddReadyzCheck("webhooks", l.checkRegistered), mgr.Add(l))
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every process serves webhooks.
func (*Local) NeedLeaderElection() bool { return false }

func (l *Local) checkRegistered(*http.Request) error {
	if !l.registered.Load() {
		return errors.New("the webhooks are not registered yet")
	}
	return nil
}

// Start implements manager.Runnable. It registers the webhooks until the context ends. The manager stops its
// webhook server after that, so that no request fails.
func (l *Local) Start(ctx context.Context) error {
	listening := func(context.Context) (bool, error) { return l.listening(nil) == nil, nil }
	if err := wait.PollUntilContextCancel(ctx, listenInterval, true, listening); err != nil {
		return nil // the process ends, perhaps because the server can't listen
	}
	configurations, err := l.configurations()
	if err != nil {
		return err
	}
	err = l.register(ctx, configurations)
	if err == nil {
		l.registered.Store(true)
		logf.FromContext(ctx).Info("Registered the webhooks", "address", l.address)
		<-ctx.Done()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unregisterTimeout)
	defer cancel()
	return cmp.Or(err, l.unregister(ctx, configurations))
}

// configurations returns the mutating and the validating configuration, with the URL and the certificate of this
// process.
func (l *Local) configurations() ([]client.Object, error) {
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), len(manifests))
	if err := errors.Join(documents.Decode(mutating), documents.Decode(validating)); err != nil {
		return nil, fmt.Errorf("read webhooks.yaml: %w", err)
	}
	for i := range mutating.Webhooks {
		l.redirect(&mutating.Webhooks[i].ClientConfig)
	}
	for i := range validating.Webhooks {
		l.redirect(&validating.Webhooks[i].ClientConfig)
	}
	return []client.Object{mutating, validating}, nil
}

// redirect replaces the Service by this process.
func (l *Local) redirect(config *admissionregistrationv1.WebhookClientConfig) {
	config.URL = new("https://" + l.address + *config.Service.Path)
	config.Service, config.CABundle = nil, l.caBundle
}

// register creates the configurations, in place of those that a killed process may have left, and makes the API
// server call this process to convert.
func (l *Local) register(ctx context.Context, configurations []client.Object) error {
	for _, configuration := range configurations {
		if err := client.IgnoreNotFound(l.client.Delete(ctx, configuration)); err != nil {
			return fmt.Errorf("delete the old %s: %w", configuration.GetName(), err)
		}
		if err := l.client.Create(ctx, configuration); err != nil {
			return fmt.Errorf("create %s: %w", configuration.GetName(), err)
		}
	}
	return l.patchConversion(ctx, func(conversion *crdConversion) *crdConversion {
		l.oldConversion = conversion
		return l.conversion()
	})
}

// unregister undoes register. It leaves alone what someone else has written since then.
func (l *Local) unregister(ctx context.Context, configurations []client.Object) error {
	for _, configuration := range configurations {
		err := l.client.Delete(ctx, configuration, client.Preconditions{UID: new(configuration.GetUID())})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // a conflict: another process has replaced it
			return fmt.Errorf("delete %s: %w", configuration.GetName(), err)
		}
	}
	err := l.patchConversion(ctx, func(conversion *crdConversion) *crdConversion {
		if !equality.Semantic.DeepEqual(conversion, l.conversion()) {
			return conversion
		}
		return l.oldConversion
	})
	return client.IgnoreNotFound(err)
}

func (l *Local) conversion() *crdConversion {
	return &crdConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://" + l.address + convertPath), CABundle: l.caBundle},
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

// patchConversion changes spec.conversion of the CRD, and nothing else in it.
func (l *Local) patchConversion(ctx context.Context, change func(*crdConversion) *crdConversion) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := l.client.Get(ctx, client.ObjectKey{Name: crdName}, crd); err != nil {
		return fmt.Errorf("get the CRD %s: %w", crdName, err)
	}
	before := crd.DeepCopy()
	crd.Spec.Conversion = change(crd.Spec.Conversion)
	if err := l.client.Patch(ctx, crd, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patch the CRD %s: %w", crdName, err)
	}
	return nil
}

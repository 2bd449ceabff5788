package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	// gracefulShutdown bounds how long work in progress may continue after the signal to stop. The pod's
	// terminationGracePeriodSeconds is longer.
	gracefulShutdown = 20 * time.Second
	// syncWait bounds how long a readiness probe waits for the caches.
	syncWait = 500 * time.Millisecond
)

// ForManager completes the options of a manager that is started with ctx. It keeps the caller's options that it doesn't
// set itself, such as Scheme, LeaderElectionID and Cache.ByObject. If there is no WebhookServer, it makes one, with the
// port and certificate folder that kubebuilder's manifests expect.
//
// The manager's client reads from the cache, and a read waits until the cache contains the client's own writes.
// Otherwise a reconcile right after a write could work from the state before that write, and the reconcile's next write
// could be rejected and retried. Waiting only avoids such conflicts, and correctness must not depend on it: in
// controller-runtime v0.25.2 EnableReadYourWritesConsistency is experimental, and a read can't wait for a cache of
// several namespaces, which has an informer for each.
func (o *Options) ForManager(ctx context.Context, setup ctrl.Options) ctrl.Options {
	setup.Cache.DefaultNamespaces = o.cachedNamespaces()
	setup.Cache.DefaultTransform = cache.TransformStripManagedFields()
	setup.Cache.SyncPeriod = &o.ResyncPeriod
	setup.NewCache = func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		return newCache(ctx, config, options)
	}
	setup.Client = client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(len(o.Namespaces) <= 1)}}
	if setup.WebhookServer == nil {
		setup.WebhookServer = webhook.NewServer(webhook.Options{TLSOpts: o.TLSOpts()})
	}
	setup.Metrics = o.Metrics.forServer(o.TLSOpts())
	setup.HealthProbeBindAddress = o.HealthProbeBindAddress
	setup.LeaderElection = o.LeaderElect
	setup.LeaderElectionNamespace = o.LeaderElectionNamespace
	setup.LeaderElectionReleaseOnCancel = true // after the workers have ended; a leader that fails to renew its Lease releases it earlier
	setup.GracefulShutdownTimeout = new(gracefulShutdown)
	setup.Controller = config.Controller{
		MaxConcurrentReconciles: o.MaxConcurrentReconciles,
		EnableWarmup:            new(true), // a standby replica fills its caches in advance
	}
	return setup
}

// cachedNamespaces returns the namespaces to cache, or nil for all. The cache lists and watches namespaced kinds only
// in these namespaces, so a Role in each is enough for them.
func (o *Options) cachedNamespaces() map[string]cache.Config {
	if len(o.Namespaces) == 0 {
		return nil
	}
	cached := map[string]cache.Config{}
	for _, namespace := range o.Namespaces {
		cached[namespace] = cache.Config{}
	}
	return cached
}

// TLSOpts returns the TLS options for the servers of metrics and webhooks: unless EnableHTTP2 is set, they offer only
// HTTP/1.1.
func (o *Options) TLSOpts() []func(*tls.Config) {
	if o.EnableHTTP2 {
		return nil
	}
	return []func(*tls.Config){func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }}
}

func (m *MetricsOptions) forServer(tlsOpts []func(*tls.Config)) metricsserver.Options {
	options := metricsserver.Options{
		BindAddress:   m.BindAddress,
		SecureServing: m.Secure,
		CertDir:       m.CertPath,
		CertName:      m.CertName,
		KeyName:       m.KeyName,
		TLSOpts:       tlsOpts,
	}
	if m.Secure {
		// The filter asks the API server who the client is (TokenReview), and whether it may get /metrics
		// (SubjectAccessReview).
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}

// AddProbes makes the manager serve /healthz, and /readyz, which fails until the caches are filled.
func AddProbes(mgr ctrl.Manager) error {
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return fmt.Errorf("add the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("readyz", cachesFilled(mgr.GetCache())); err != nil {
		return fmt.Errorf("add the readiness check: %w", err)
	}
	return nil
}

func cachesFilled(caches cache.Cache) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), syncWait)
		defer cancel()
		if !caches.WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}

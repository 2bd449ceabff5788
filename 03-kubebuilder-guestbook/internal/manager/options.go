// Package manager holds the options of the process that the controller runs in.
package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/operator-workshop/03-kubebuilder-guestbook/internal/controller"
)

const (
	// leaderElectionID is the name of the Lease that replicas agree by.
	leaderElectionID = "guestbook.my.domain"
	// gracefulShutdown bounds how long work that has begun may go on after the
	// signal to stop. The pod's terminationGracePeriodSeconds is longer.
	gracefulShutdown = 20 * time.Second
	// syncWait is how long a readiness probe waits for the caches.
	syncWait = 500 * time.Millisecond
)

// Options are what the command line decides. [Default] returns sensible ones.
type Options struct {
	// Namespaces are the only ones whose Guestbooks are looked after; all if empty.
	Namespaces []string
	// MaxConcurrentReconciles is how many Guestbooks are worked on at the same time, at least 1.
	MaxConcurrentReconciles int
	// ResyncPeriod is how often every object is looked at although nothing has happened, more than 0.
	ResyncPeriod time.Duration
	// LeaderElect makes the process work only while it holds the Lease in LeaderElectionNamespace.
	// Without a namespace it is that of the pod the process runs in.
	LeaderElect             bool
	LeaderElectionNamespace string
	// HealthProbeBindAddress serves /healthz and /readyz; "0" is off.
	HealthProbeBindAddress string
	Metrics                MetricsOptions
}

// MetricsOptions say how /metrics is served.
type MetricsOptions struct {
	// BindAddress is the address; "0" is off.
	BindAddress string
	// Secure serves over TLS, and only those whom the cluster allows to get the path /metrics.
	Secure bool
	// CertPath is the folder with the certificate CertName and its key KeyName. Without it the
	// server makes itself a certificate, which nobody can verify.
	CertPath, CertName, KeyName string
	// EnableHTTP2 allows HTTP/2, whose multiplexed streams clients have abused to exhaust
	// servers (CVE-2023-44487, CVE-2023-39325).
	EnableHTTP2 bool
}

// Default returns the options of a process that is told nothing: all namespaces, loopback only, no metrics.
func Default() Options {
	return Options{
		MaxConcurrentReconciles: 2,
		ResyncPeriod:            10 * time.Hour,
		HealthProbeBindAddress:  "127.0.0.1:8081",
		Metrics:                 MetricsOptions{BindAddress: "0", Secure: true, CertName: "tls.crt", KeyName: "tls.key"},
	}
}

// AddFlags adds a flag for each option, with its present value as the default.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.Func("namespaces", "the only `namespaces` whose Guestbooks are looked after, such as a,b; all if not given", o.setNamespaces)
	flags.IntVar(&o.MaxConcurrentReconciles, "max-concurrent-reconciles", o.MaxConcurrentReconciles, "how many Guestbooks are worked on at the same time")
	flags.DurationVar(&o.ResyncPeriod, "resync-period", o.ResyncPeriod, "how often every object is looked at although nothing has happened")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "work only while holding a Lease; needed with several replicas")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", o.LeaderElectionNamespace, "`namespace` of the Lease; that of the pod if not given")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress, "`address` of /healthz and /readyz; 0 is off")
	flags.StringVar(&o.Metrics.BindAddress, "metrics-bind-address", o.Metrics.BindAddress, "`address` of /metrics, such as :8443; 0 is off")
	flags.BoolVar(&o.Metrics.Secure, "metrics-secure", o.Metrics.Secure, "serve /metrics over TLS, to those whom the cluster allows it")
	flags.StringVar(&o.Metrics.CertPath, "metrics-cert-path", o.Metrics.CertPath, "`folder` with the certificate of /metrics; a self-signed one if not given")
	flags.StringVar(&o.Metrics.CertName, "metrics-cert-name", o.Metrics.CertName, "`file` name of the certificate")
	flags.StringVar(&o.Metrics.KeyName, "metrics-cert-key", o.Metrics.KeyName, "`file` name of the certificate's key")
	flags.BoolVar(&o.Metrics.EnableHTTP2, "enable-http2", o.Metrics.EnableHTTP2, "allow HTTP/2 for /metrics")
}

func (o *Options) setNamespaces(list string) error {
	namespaces := strings.Split(list, ",")
	for _, namespace := range namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("%q is no namespace: %s", namespace, problems[0])
		}
	}
	o.Namespaces = namespaces
	return nil
}

// Validate returns an error that names the flag to change.
func (o *Options) Validate() error {
	switch {
	case o.MaxConcurrentReconciles < 1:
		return fmt.Errorf("--max-concurrent-reconciles=%d: at least 1 is needed", o.MaxConcurrentReconciles)
	case o.ResyncPeriod <= 0:
		return fmt.Errorf("--resync-period=%s: give a positive duration", o.ResyncPeriod)
	case o.Metrics.CertPath != "" && !o.Metrics.Secure:
		return errors.New("--metrics-cert-path is for TLS: leave --metrics-secure=false out")
	case o.Metrics.CertPath != "":
		return o.Metrics.findCertificate()
	}
	return nil
}

// findCertificate returns an error if a file is missing, for which the server
// would make up with a certificate of its own.
func (m *MetricsOptions) findCertificate() error {
	for _, file := range []string{m.CertName, m.KeyName} {
		if _, err := os.Stat(filepath.Join(m.CertPath, file)); err != nil {
			return fmt.Errorf("--metrics-cert-path=%s: %w", m.CertPath, err)
		}
	}
	return nil
}

// CheckAddresses returns an error that names the flag to change if an address is already in
// use. The servers would notice too, but only after a page of logs.
func (o *Options) CheckAddresses() error {
	servers := []struct{ flag, address string }{
		{"--health-probe-bind-address", o.HealthProbeBindAddress}, {"--metrics-bind-address", o.Metrics.BindAddress},
	}
	for _, server := range servers {
		if server.address == "0" {
			continue
		}
		listener, err := net.Listen("tcp", server.address)
		if err != nil {
			return fmt.Errorf("%s: %w; choose another address, or 0 for none", server.flag, err)
		}
		_ = listener.Close()
	}
	return nil
}

// ForManager translates the options into those of a manager that is started with ctx.
//
// Its client reads from the cache, and waits there until the cache shows what it
// has written itself: a reconcile right after a write would otherwise work from
// the state before it, and be refused. controller-runtime v0.25.2 can't do that
// for a cache of several namespaces, which has an informer for each; there such a
// reconcile is refused, and tried again.
func (o *Options) ForManager(ctx context.Context, scheme *runtime.Scheme) ctrl.Options {
	return ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultNamespaces: o.cachedNamespaces(),
			DefaultTransform:  cache.TransformStripManagedFields(),
			ByObject:          controller.CacheByObject(),
			SyncPeriod:        &o.ResyncPeriod,
		},
		NewCache: func(config *rest.Config, options cache.Options) (cache.Cache, error) {
			return newCache(ctx, config, options)
		},
		Client:                        client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(len(o.Namespaces) <= 1)}},
		Metrics:                       o.Metrics.forServer(),
		HealthProbeBindAddress:        o.HealthProbeBindAddress,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              leaderElectionID,
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true, // after SIGTERM, when the workers have ended; a leader that can't renew its Lease gives it up before that
		GracefulShutdownTimeout:       new(gracefulShutdown),
		Controller: config.Controller{
			MaxConcurrentReconciles: o.MaxConcurrentReconciles,
			EnableWarmup:            new(true), // a replica that stands by fills its caches already
		},
	}
}

// cachedNamespaces is nil for all. With it the cache lists and watches in these
// namespaces only, so that a Role in each is enough.
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

func (m *MetricsOptions) forServer() metricsserver.Options {
	options := metricsserver.Options{
		BindAddress:   m.BindAddress,
		SecureServing: m.Secure,
		CertDir:       m.CertPath,
		CertName:      m.CertName,
		KeyName:       m.KeyName,
	}
	if m.Secure {
		// Asks the API server who it is (TokenReview), and whether they may get /metrics (SubjectAccessReview).
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if !m.EnableHTTP2 {
		options.TLSOpts = append(options.TLSOpts, func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} })
	}
	return options
}

// AddProbes makes the manager serve /healthz and /readyz.
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

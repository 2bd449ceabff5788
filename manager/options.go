// Package manager configures a controller-runtime manager from the command line, the way an operator needs it in
// production: leader election with a quick handover, caches for some namespaces or all, metrics for authorized
// clients only, and meaningful probes.
//
// The operators of stages 3, 4 and 5 would otherwise each repeat this code. A cmd/main.go adds only its own parts:
//
//	options := manager.Default()
//	flags := flag.NewFlagSet("guestbook-controller", flag.ContinueOnError)
//	options.AddFlags(flags, "Guestbooks")
//	if err := options.Parse(flags, args, version, revision); err != nil { … }
//	options.SetLogger()
//	config, err := manager.GetConfig(flags)
//	mgr, err := ctrl.NewManager(config, options.ForManager(ctx, ctrl.Options{Scheme: scheme, LeaderElectionID: "guestbook.my.domain"}))
//	err = manager.AddProbes(mgr)
package manager

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/validation"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Options are the settings that command-line flags can change. [Default] returns sensible ones.
type Options struct {
	// Namespaces are the namespaces to watch. If there are none, all namespaces are watched.
	Namespaces []string
	// MaxConcurrentReconciles is how many objects of a kind may be reconciled at the same time. It must be at least 1.
	MaxConcurrentReconciles int
	// ResyncPeriod is how often every object is reconciled without an event. It must be more than 0.
	ResyncPeriod time.Duration
	// LeaderElect makes the process work only while it holds the Lease in LeaderElectionNamespace. If that is empty,
	// the Lease is in the namespace of the process's pod.
	LeaderElect             bool
	LeaderElectionNamespace string
	// HealthProbeBindAddress is the address of /healthz and /readyz. "0" switches the server off.
	HealthProbeBindAddress string
	// EnableHTTP2 allows HTTP/2. Clients have abused its multiplexed streams to exhaust servers (CVE-2023-44487,
	// CVE-2023-39325).
	EnableHTTP2 bool
	Metrics     MetricsOptions
	Logging     zap.Options
}

// MetricsOptions say how /metrics is served.
type MetricsOptions struct {
	// BindAddress is the address of the server. "0" switches it off.
	BindAddress string
	// Secure means that the server uses TLS, and gives the metrics only to clients that the cluster authorizes to get
	// the path /metrics.
	Secure bool
	// CertPath is the folder with the certificate CertName and its key KeyName. If CertPath is empty, the server looks
	// for them in k8s-metrics-server/serving-certs in the folder for temporary files. If they are not there, it makes a
	// self-signed certificate, which no client can verify.
	CertPath, CertName, KeyName string
}

// Default returns the options of a process without flags: all namespaces, loopback only, no metrics.
func Default() Options {
	return Options{
		MaxConcurrentReconciles: 2,
		ResyncPeriod:            10 * time.Hour,
		HealthProbeBindAddress:  "127.0.0.1:8081",
		Metrics:                 MetricsOptions{BindAddress: "0", Secure: true, CertName: "tls.crt", KeyName: "tls.key"},
		// Readable lines without stack traces; --zap-devel=false gives JSON.
		Logging: zap.Options{Development: true, Level: zapcore.InfoLevel, StacktraceLevel: zapcore.DPanicLevel},
	}
}

// AddFlags adds a flag for each option, with its current value as the default, and --kubeconfig for [GetConfig].
// objects is what the help texts call the operator's objects, such as Guestbooks.
func (o *Options) AddFlags(flags *flag.FlagSet, objects string) {
	clientconfig.RegisterFlags(flags)
	flags.Func("namespaces", "the only `namespaces` to watch for "+objects+", such as a,b; all if not given", o.SetNamespaces)
	flags.IntVar(&o.MaxConcurrentReconciles, "max-concurrent-reconciles", o.MaxConcurrentReconciles, "how many "+objects+" to reconcile at the same time")
	flags.DurationVar(&o.ResyncPeriod, "resync-period", o.ResyncPeriod, "how often to reconcile every object without an event")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "work only while holding a Lease; needed with several replicas")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", o.LeaderElectionNamespace, "`namespace` of the Lease; that of the pod if not given")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress, "`address` of /healthz and /readyz; 0 is off")
	flags.StringVar(&o.Metrics.BindAddress, "metrics-bind-address", o.Metrics.BindAddress, "`address` of /metrics, such as :8443; 0 is off")
	flags.BoolVar(&o.Metrics.Secure, "metrics-secure", o.Metrics.Secure, "serve /metrics over TLS, only to clients that the cluster authorizes")
	flags.StringVar(&o.Metrics.CertPath, "metrics-cert-path", o.Metrics.CertPath, "`folder` with the certificate of /metrics; a self-signed one if not given")
	flags.StringVar(&o.Metrics.CertName, "metrics-cert-name", o.Metrics.CertName, "`file` name of the certificate")
	flags.StringVar(&o.Metrics.KeyName, "metrics-cert-key", o.Metrics.KeyName, "`file` name of the certificate's key")
	flags.BoolVar(&o.EnableHTTP2, "enable-http2", o.EnableHTTP2, "allow HTTP/2 on servers with TLS")
	o.Logging.BindFlags(flags)
}

// SetNamespaces sets Namespaces to a comma-separated list of names. If one isn't valid, it fails and changes nothing.
func (o *Options) SetNamespaces(list string) error {
	namespaces := strings.Split(list, ",")
	for _, namespace := range namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("%q is not a namespace: %s", namespace, problems[0])
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
		return errors.New("--metrics-cert-path is for TLS: remove --metrics-secure=false")
	case o.Metrics.CertPath != "":
		return FindCertificate("--metrics-cert-path", o.Metrics.CertPath, o.Metrics.CertName, o.Metrics.KeyName)
	}
	return nil
}

// FindCertificate checks that the folder contains the files. Its error names the flag. Without this check, a metrics
// server would make its own certificate, and a webhook server would fail later.
func FindCertificate(flagName, folder string, files ...string) error {
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			return fmt.Errorf("%s=%s: %w", flagName, folder, err)
		}
	}
	return nil
}

// CheckAddresses returns an error that names the flag to change if the process can't listen on the address of the
// probes or of the metrics, for instance because it is already in use. The servers would notice that, too, but only
// after a page of logs.
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

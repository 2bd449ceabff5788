package lifecycle

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

const (
	// Disabled is the address of a server that is switched off.
	Disabled = "0"
	// namespaceFile contains the name of the namespace of the pod in which the process runs.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// Options say what the process serves, and how replicas elect a leader. [DefaultOptions] returns sensible ones.
type Options struct {
	// MetricsBindAddress is the address of /metrics, and HealthProbeBindAddress is that of /healthz and /readyz. "0"
	// switches a server off.
	MetricsBindAddress, HealthProbeBindAddress string
	LeaderElection                             LeaderElection
}

// LeaderElection says how replicas elect a leader, which does the work.
type LeaderElection struct {
	Enabled bool
	// Namespace is the namespace of the Lease.
	Namespace string
	// Identity is this replica's name in the Lease. No two replicas may have the same name. If it is empty, a unique one
	// is generated.
	Identity string
	// LeaseDuration is how long the other replicas wait for a silent leader, in whole seconds.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew the Lease before it gives up. It must be shorter than
	// LeaseDuration.
	RenewDeadline time.Duration
	// RetryPeriod is the pause between attempts to renew or to acquire the Lease.
	RetryPeriod time.Duration
}

// DefaultOptions returns options for serving on loopback addresses only, without leader election.
func DefaultOptions() Options {
	return Options{
		MetricsBindAddress:     "127.0.0.1:8080",
		HealthProbeBindAddress: "127.0.0.1:8081",
		LeaderElection: LeaderElection{
			Namespace:     podNamespace(),
			LeaseDuration: 15 * time.Second,
			RenewDeadline: 10 * time.Second,
			RetryPeriod:   2 * time.Second,
		},
	}
}

// podNamespace returns the namespace of the pod in which the process runs, or "default".
func podNamespace() string {
	content, err := os.ReadFile(namespaceFile)
	if name := strings.TrimSpace(string(content)); err == nil && name != "" {
		return name
	}
	return "default"
}

// AddFlags adds a flag for each option, with its current value as the default.
func (o *Options) AddFlags(set *flag.FlagSet) {
	set.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress, "`address` of /metrics; 0 is off")
	set.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress, "`address` of /healthz and /readyz; 0 is off")
	election := &o.LeaderElection
	set.BoolVar(&election.Enabled, "leader-elect", election.Enabled, "work only while holding a Lease; needed with several replicas")
	set.StringVar(&election.Namespace, "leader-election-namespace", election.Namespace, "`namespace` of the Lease")
	set.StringVar(&election.Identity, "leader-election-identity", election.Identity, "this replica's own `name` in the Lease; generated if empty")
	set.DurationVar(&election.LeaseDuration, "leader-election-lease-duration", election.LeaseDuration, "how long the others wait for a silent leader")
	set.DurationVar(&election.RenewDeadline, "leader-election-renew-deadline", election.RenewDeadline, "how long the leader tries to renew the Lease before it gives up")
	set.DurationVar(&election.RetryPeriod, "leader-election-retry-period", election.RetryPeriod, "how often to renew the Lease, or to try to acquire it")
}

// Validate returns an error that names the flag to change. Addresses are checked by [StartServers].
func (o *Options) Validate() error {
	if !o.LeaderElection.Enabled {
		return nil
	}
	return o.LeaderElection.validate()
}

func (o LeaderElection) validate() error {
	// The Lease stores whole seconds: the other replicas would read 1.9 s as 1 s.
	if o.LeaseDuration < time.Second || o.LeaseDuration%time.Second != 0 {
		return fmt.Errorf("--leader-election-lease-duration=%s: give whole seconds, at least 1s", o.LeaseDuration)
	}
	if o.RenewDeadline >= o.LeaseDuration {
		return fmt.Errorf("--leader-election-renew-deadline=%s must be shorter than --leader-election-lease-duration=%s, or two replicas could work at the same time", o.RenewDeadline, o.LeaseDuration)
	}
	longest := time.Duration(float64(o.RenewDeadline) / leaderelection.JitterFactor)
	if o.RetryPeriod <= 0 || o.RetryPeriod >= longest {
		return fmt.Errorf("--leader-election-retry-period=%s: give more than 0 and less than %s, so that a renewal can be tried again before --leader-election-renew-deadline=%s", o.RetryPeriod, longest, o.RenewDeadline)
	}
	if o.Namespace == "" {
		return errors.New("--leader-election-namespace is empty: name the namespace for the Lease")
	}
	return nil
}

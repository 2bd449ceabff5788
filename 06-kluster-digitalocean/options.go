package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// disabledAddress turns the server of a bind address off.
	disabledAddress = "0"
	// namespaceFile names the namespace of the pod that the process runs in.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// options are what run needs to know besides the cluster.
type options struct {
	// namespace is the only one whose Klusters are looked after; "" stands for all.
	namespace string
	// workers is how many Klusters are worked on at the same time.
	workers int
	// resyncPeriod is how often every Kluster is looked at although nothing has happened. 0 is never.
	resyncPeriod time.Duration
	// drainTimeout bounds how long work that has begun may go on after the signal to stop.
	drainTimeout time.Duration
	// metricsBindAddress serves /metrics, healthProbeBindAddress /healthz and /readyz; "0" is off.
	metricsBindAddress, healthProbeBindAddress string

	// pollInterval is how often a cluster is looked at on which the cloud works.
	pollInterval time.Duration
	// observeInterval is how often a finished one is looked at, for what others do to it in the cloud.
	observeInterval time.Duration
	// retryInterval is how long to wait where only people can help, and no event tells that they have.
	retryInterval time.Duration
	// settleTime is how long a cluster that was asked for may be missing in the cloud's list.
	settleTime time.Duration
	// clock tells when credentials end, and how long a deletion has waited.
	clock clock.PassiveClock

	cloud          cloudOptions
	leaderElection leaderElectionOptions
}

// leaderElectionOptions say how replicas agree on the one that works.
type leaderElectionOptions struct {
	enabled bool
	// namespace is where the Lease lies.
	namespace string
	// identity is this replica's name in the Lease; made up if empty.
	identity string
	// leaseDuration is how long the others wait for a leader that is silent.
	leaseDuration time.Duration
	// renewDeadline is after how long without success the leader gives up. It must be shorter.
	renewDeadline time.Duration
	// retryPeriod is how often the Lease is renewed, or tried for.
	retryPeriod time.Duration
}

func defaultOptions() options {
	return options{
		workers:                2,
		resyncPeriod:           10 * time.Minute,
		drainTimeout:           20 * time.Second,
		metricsBindAddress:     "127.0.0.1:8080",
		healthProbeBindAddress: "127.0.0.1:8081",
		pollInterval:           10 * time.Second,
		observeInterval:        5 * time.Minute,
		retryInterval:          30 * time.Second,
		settleTime:             30 * time.Second,
		clock:                  clock.RealClock{},
		cloud:                  defaultCloud(),
		leaderElection: leaderElectionOptions{
			namespace:     podNamespace(),
			leaseDuration: 15 * time.Second,
			renewDeadline: 10 * time.Second,
			retryPeriod:   2 * time.Second,
		},
	}
}

// podNamespace is the namespace of the pod the process runs in, else "default".
func podNamespace() string {
	content, err := os.ReadFile(namespaceFile)
	if name := strings.TrimSpace(string(content)); err == nil && name != "" {
		return name
	}
	return "default"
}

// validate returns an error that names the flag to change.
func (o options) validate() error {
	switch {
	case o.workers < 1:
		return fmt.Errorf("--workers=%d: at least 1 is needed", o.workers)
	case o.resyncPeriod < 0:
		return fmt.Errorf("--resync-period=%s: give 0 for never, or a positive duration", o.resyncPeriod)
	case o.drainTimeout <= 0:
		return fmt.Errorf("--drain-timeout=%s: give a positive duration", o.drainTimeout)
	case o.pollInterval <= 0 || o.observeInterval <= 0 || o.retryInterval <= 0 || o.settleTime <= 0:
		return errors.New("--poll-interval, --observe-interval, --retry-interval, --settle-time: give positive durations")
	}
	if err := o.cloud.validate(); err != nil {
		return err
	}
	if o.leaderElection.enabled {
		return o.leaderElection.validate()
	}
	return nil
}

func (o leaderElectionOptions) validate() error {
	// The Lease holds whole seconds: 1.9 s would tell the others 1 s.
	if o.leaseDuration < time.Second || o.leaseDuration%time.Second != 0 {
		return fmt.Errorf("--leader-election-lease-duration=%s: give whole seconds", o.leaseDuration)
	}
	if o.renewDeadline >= o.leaseDuration {
		return fmt.Errorf("--leader-election-renew-deadline=%s must be shorter than --leader-election-lease-duration=%s, or two replicas could work at once", o.renewDeadline, o.leaseDuration)
	}
	longest := time.Duration(float64(o.renewDeadline) / leaderelection.JitterFactor)
	if o.retryPeriod <= 0 || o.retryPeriod >= longest {
		return fmt.Errorf("--leader-election-retry-period=%s: give more than 0 and less than %s, so that a renewal can be tried again before --leader-election-renew-deadline=%s", o.retryPeriod, longest, o.renewDeadline)
	}
	if o.namespace == "" {
		return errors.New("--leader-election-namespace is empty: name the namespace for the Lease")
	}
	return nil
}

// flags are the options and what only the command line needs.
type flags struct {
	options
	kubeconfig string
	qps        float64
	burst      int
	version    bool
}

// parseFlags reads the arguments. It returns flag.ErrHelp after printing the
// help that was asked for, and else an error of one line.
func parseFlags(args []string, output io.Writer) (flags, error) {
	f := flags{options: defaultOptions()}
	set := flag.NewFlagSet(programName, flag.ContinueOnError)
	set.SetOutput(io.Discard) // the package would print all flags after each mistake
	f.bind(set)
	err := set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		set.SetOutput(output)
		set.PrintDefaults()
		return f, err
	}
	if err == nil && set.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if err != nil {
		return f, fmt.Errorf("%w: --help lists the flags", err)
	}
	if f.qps == 0 || f.qps > 0 && f.burst < 1 {
		return f, fmt.Errorf("--kube-api-qps=%v --kube-api-burst=%d: give both at least 1, or a negative --kube-api-qps for no limit", f.qps, f.burst)
	}
	return f, f.validate()
}

func (f *flags) bind(set *flag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "`file` that names the cluster; without it $KUBECONFIG, or the cluster of this pod")
	set.StringVar(&f.namespace, "namespace", f.namespace, "the only `namespace` whose Klusters are looked after; empty for all")
	set.IntVar(&f.workers, "workers", f.workers, "how many Klusters are worked on at the same time")
	set.DurationVar(&f.resyncPeriod, "resync-period", f.resyncPeriod, "how often every Kluster is looked at although nothing has happened; 0 is never")
	set.DurationVar(&f.drainTimeout, "drain-timeout", f.drainTimeout, "how long work may go on after the signal to stop")
	set.StringVar(&f.metricsBindAddress, "metrics-bind-address", f.metricsBindAddress, "`address` of /metrics; 0 is off")
	set.StringVar(&f.healthProbeBindAddress, "health-probe-bind-address", f.healthProbeBindAddress, "`address` of /healthz and /readyz; 0 is off")

	set.DurationVar(&f.pollInterval, "poll-interval", f.pollInterval, "how often a cluster is looked at on which the cloud works")
	set.DurationVar(&f.observeInterval, "observe-interval", f.observeInterval, "how often a finished cluster is looked at")
	set.DurationVar(&f.retryInterval, "retry-interval", f.retryInterval, "how long to wait where only people can help")
	set.DurationVar(&f.settleTime, "settle-time", f.settleTime, "how long a cluster that was asked for may be missing in the cloud's list")
	f.cloud.bind(set)

	election := &f.leaderElection
	set.BoolVar(&election.enabled, "leader-elect", election.enabled, "work only while holding a Lease; needed with several replicas")
	set.StringVar(&election.namespace, "leader-election-namespace", election.namespace, "`namespace` of the Lease")
	set.StringVar(&election.identity, "leader-election-id", election.identity, "this replica's `name` in the Lease; made up if empty")
	set.DurationVar(&election.leaseDuration, "leader-election-lease-duration", election.leaseDuration, "how long the others wait for a leader that is silent")
	set.DurationVar(&election.renewDeadline, "leader-election-renew-deadline", election.renewDeadline, "after how long without success the leader gives up")
	set.DurationVar(&election.retryPeriod, "leader-election-retry-period", election.retryPeriod, "how often the Lease is renewed, or tried for")

	// No limit in the client: the API server's priority and fairness shares its capacity out among all
	// clients, and knows their load. client-go's default of 5 requests a second would make 100 Klusters take 40 s.
	set.Float64Var(&f.qps, "kube-api-qps", -1, "requests a second to the API server; negative is no limit")
	set.IntVar(&f.burst, "kube-api-burst", -1, "requests that may exceed --kube-api-qps for a moment")
	set.BoolVar(&f.version, "version", false, "print the version and end")

	logging := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(logging)
	set.Var(logging.Lookup("v").Value, "v", "how much is logged: 0 changes and errors, 4 also what is skipped or tried again")
}

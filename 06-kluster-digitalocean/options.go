package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"

	"example.com/operator-workshop/lifecycle"
)

// options are the settings of a run.
type options struct {
	lifecycle.Options
	// namespace is the only namespace whose Klusters are reconciled. If it is empty, the operator reconciles the
	// Klusters of all namespaces.
	namespace string
	// workers is how many Klusters are reconciled at the same time.
	workers int
	// resyncPeriod is how often every Kluster is reconciled without an event. If it is 0, there are no resyncs.
	resyncPeriod time.Duration
	// drainTimeout bounds how long the workers may keep working after the signal to stop.
	drainTimeout time.Duration

	// pollInterval is how often to observe a cluster that the cloud is changing.
	pollInterval time.Duration
	// observeInterval is how often to observe a cluster that matches its spec, or that the cloud could not create, to
	// detect changes in the cloud.
	observeInterval time.Duration
	// retryInterval is how long to wait before looking again at a degraded cluster, or after the first of several
	// terminal errors in a row; after each further one, the wait doubles. No event announces that a problem in the cloud
	// has been fixed.
	retryInterval time.Duration
	// consistencyWindow is how long the cloud, which is eventually consistent, may take to show a new cluster.
	consistencyWindow time.Duration
	// firstRetry is how long to wait after the first of several errors in a row that are not terminal. It is meant for
	// failed requests to the cloud, where a retry after milliseconds rarely helps. After a conflict, it delays little:
	// the event for the Kluster's change queues the Kluster sooner.
	firstRetry time.Duration
	// outageThreshold is how long the cloud must have been unavailable before the status shows it. Most outages are
	// over within a minute, and they say nothing about the cluster, which usually keeps running.
	outageThreshold time.Duration
	// clock tells the time for the create intent, the consistency window, outages and the expiry of credentials.
	clock clock.PassiveClock

	cloud cloudOptions
}

func defaultOptions() options {
	return options{
		Options:           lifecycle.DefaultOptions(),
		workers:           2,
		resyncPeriod:      10 * time.Minute,
		drainTimeout:      20 * time.Second,
		pollInterval:      10 * time.Second,
		observeInterval:   5 * time.Minute,
		retryInterval:     30 * time.Second,
		consistencyWindow: 30 * time.Second,
		firstRetry:        time.Second,
		outageThreshold:   time.Minute,
		clock:             clock.RealClock{},
		cloud:             defaultCloud(),
	}
}

// validate returns nil if the options are valid, and otherwise an error that names the flag, or the flags, to check.
func (o options) validate() error {
	switch {
	case o.workers < 1:
		return fmt.Errorf("--workers=%d: at least 1 is needed", o.workers)
	case o.resyncPeriod < 0:
		return fmt.Errorf("--resync-period=%s: give 0 for never, or a positive duration", o.resyncPeriod)
	case o.drainTimeout <= 0:
		return fmt.Errorf("--drain-timeout=%s: give a positive duration", o.drainTimeout)
	case o.pollInterval <= 0 || o.observeInterval <= 0 || o.retryInterval <= 0 || o.consistencyWindow <= 0:
		return errors.New("--poll-interval, --observe-interval, --retry-interval, --consistency-window: give positive durations")
	}
	if err := o.cloud.validate(); err != nil {
		return err
	}
	return o.Validate()
}

// flags are the options, plus the flags that only the command line needs.
type flags struct {
	options
	commandLine lifecycle.Flags
}

// parseFlags reads and checks the arguments. It returns flag.ErrHelp after printing the help, and a one-line error if
// an argument is invalid.
func parseFlags(args []string, output io.Writer) (flags, error) {
	f := flags{options: defaultOptions()}
	set := flag.NewFlagSet(programName, flag.ContinueOnError)
	f.bind(set)
	if err := lifecycle.Parse(set, args, output); err != nil {
		return f, err
	}
	if err := f.commandLine.Validate(); err != nil {
		return f, err
	}
	return f, f.validate()
}

func (f *flags) bind(set *flag.FlagSet) {
	f.commandLine.AddFlags(set)
	f.AddFlags(set)
	set.StringVar(&f.namespace, "namespace", f.namespace, "the only `namespace` whose Klusters are reconciled; empty for all")
	set.IntVar(&f.workers, "workers", f.workers, "how many Klusters are reconciled at the same time")
	set.DurationVar(&f.resyncPeriod, "resync-period", f.resyncPeriod, "how often every Kluster is reconciled without an event; 0 is never")
	set.DurationVar(&f.drainTimeout, "drain-timeout", f.drainTimeout, "how long work may go on after the signal to stop")
	set.DurationVar(&f.pollInterval, "poll-interval", f.pollInterval, "how often to observe a cluster that the cloud is changing")
	set.DurationVar(&f.observeInterval, "observe-interval", f.observeInterval, "how often to observe a cluster that needs no changes")
	set.DurationVar(&f.retryInterval, "retry-interval", f.retryInterval, "how long to wait before looking again after an error that a person must fix; doubled after each further one, up to 20 times this")
	set.DurationVar(&f.consistencyWindow, "consistency-window", f.consistencyWindow, "how long the cloud may take to show a new cluster")
	f.cloud.bind(set)
}

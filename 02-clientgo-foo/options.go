package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"example.com/operator-workshop/lifecycle"
)

// options are what run needs to know besides the cluster. The embedded ones cover probes, metrics and leader
// election.
type options struct {
	lifecycle.Options
	// namespace is the only namespace to watch. If it is empty, the controller watches all namespaces.
	namespace string
	// workers is how many Foos can be synced at the same time.
	workers int
	// resyncPeriod is how often every Foo is synced without an event. If it is 0, there are no resyncs.
	resyncPeriod time.Duration
	// drainTimeout bounds how long the workers may go on after the signal to stop.
	drainTimeout time.Duration
}

func defaultOptions() options {
	return options{
		Options:      lifecycle.DefaultOptions(),
		workers:      2,
		resyncPeriod: 10 * time.Minute,
		drainTimeout: 20 * time.Second,
	}
}

// validate returns an error that names the flag to change, or nil if the options are valid.
func (o options) validate() error {
	switch {
	case o.workers < 1:
		return fmt.Errorf("--workers=%d: at least 1 is needed", o.workers)
	case o.resyncPeriod < 0:
		return fmt.Errorf("--resync-period=%s: give 0 for never, or a positive duration", o.resyncPeriod)
	case o.drainTimeout <= 0:
		return fmt.Errorf("--drain-timeout=%s: give a positive duration", o.drainTimeout)
	}
	return o.Validate()
}

// flags are the options, and the settings that only the command line needs.
type flags struct {
	options
	commandLine lifecycle.Flags
}

// parseFlags reads the arguments. It returns flag.ErrHelp after printing the help. Any other error fits on one line.
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
	set.StringVar(&f.namespace, "namespace", f.namespace, "the only `namespace` to watch; empty for all")
	set.IntVar(&f.workers, "workers", f.workers, "how many Foos to sync at the same time")
	set.DurationVar(&f.resyncPeriod, "resync-period", f.resyncPeriod, "how often to sync every Foo without an event; 0 is never")
	set.DurationVar(&f.drainTimeout, "drain-timeout", f.drainTimeout, "how long work may go on after the signal to stop")
}

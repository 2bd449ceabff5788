// Command loadbench measures the controller of one stage under load. bin/workshop starts it. It is a separate program,
// because in bin/workshop, its dependencies would delay every learner's first command by a minute.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/operator-workshop/internal/bench"
	"example.com/operator-workshop/internal/load"
)

func main() {
	os.Exit(run())
}

// run measures what the flags say, and returns the exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// Discard what envtest's code logs about installing the CRDs.
	log.SetLogger(logr.Discard())
	measure := load.Measurement{Out: os.Stdout, Log: os.Stderr}
	// Don't use the default set of flags, because it contains flags of libraries.
	flags := flag.NewFlagSet("loadbench", flag.ExitOnError)
	resources := flags.String("resources", "100,500,1000", "the `numbers` of resources, each measured on its own control plane")
	flags.StringVar(&measure.Stage, "stage", "", "the stage's `folder`")
	flags.DurationVar(&measure.Idle, "idle", time.Minute, "how long to measure the idle controller")
	_ = flags.Parse(os.Args[1:]) // exits after a mistake
	var err error
	if measure.Resources, err = bench.ParseResources(*resources); err == nil {
		err = measure.Run(ctx)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "loadbench: %v\n", err)
		return 1
	}
	return 0
}

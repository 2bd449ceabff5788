// Command foo-controller runs the controller of the kind Foo: for each Foo it
// keeps one Deployment in line with the spec, and reports the result in the status.
//
// It is written with client-go and no framework, so that you can see every part of a controller:
// informers and listers (controller.go), event handlers (handlers.go), the work queue
// and its workers (controller.go), the reconcile of one Foo (sync.go), the objects it
// writes (deployment.go, status.go, events.go), leader election (lease.go), and the
// order in which all of it starts and stops (run.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// programName is the name of the user agent, the event source, the field manager and the Lease, and the value of the
// label managed-by.
const programName = "foo-controller"

// version and revision say what the program was built from. The Makefile and the Dockerfile set them through -ldflags.
var version, revision = "unknown", "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal, the default handling applies again: a second one ends the process immediately.
	context.AfterFunc(ctx, stop)
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", programName, err)
		os.Exit(1)
	}
}

// command does the work of main, but returns an error, which fits on one line, instead of ending the process.
func command(ctx context.Context, args []string, output io.Writer) error {
	flags, err := parseFlags(args, output)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if flags.commandLine.Version {
		fmt.Fprintf(output, "%s %s (revision %s)\n", programName, version, revision)
		return nil
	}
	config, err := flags.commandLine.RESTConfig()
	if err != nil {
		return err
	}
	return run(ctx, config, flags.options)
}

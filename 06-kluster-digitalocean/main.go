// Command kluster-operator runs the operator for the kind Kluster. For each Kluster, it creates a managed Kubernetes
// cluster in a cloud, keeps it in sync with the spec, and stores its kubeconfig in a Secret. By default, it deletes the
// cluster when the Kluster is deleted.
//
// It is written with client-go, like stage 2. reconcile.go reconciles one Kluster, with the help of metadata.go,
// token.go, kubeconfig.go, deletion.go and status.go. The code for the cloud is in cloud.go, package cloud and package
// digitalocean. Leader election and events, which stage 2 implements itself, come from package lifecycle.
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

// programName is the name of the user agent, the event source, the field manager and the Lease, and the value of
// managedByLabel.
const programName = "kluster-operator"

// version and revision identify the source that the program was built from. The Makefile and the Dockerfile
// set them through -ldflags.
var version, revision = "unknown", "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal, restore the default handling, so that a second signal ends the process immediately.
	context.AfterFunc(ctx, stop)
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", programName, err)
		os.Exit(1)
	}
}

// command is main without its ties to the process: tests can call it with arguments. It returns a one-line error.
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

// Command kluster-operator runs the operator of the kind Kluster: for each Kluster
// it keeps a managed Kubernetes cluster in a cloud that matches the Kluster's spec,
// stores its kubeconfig in a Secret, and deletes it with the Kluster.
//
// It is written with client-go, like stage 2. reconcile.go has the reconcile of one Kluster; around it are its metadata
// (metadata.go), its token (token.go), its kubeconfig (kubeconfig.go), its status (status.go), and the cloud (cloud.go,
// package cloud, and package digitalocean). The leader election and events that stage 2 writes by hand come from package
// lifecycle.
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

// programName is the user agent, the source of events, the field manager, and the name of the Lease.
const programName = "kluster-operator"

// version and revision identify the source that the program was built from. The Makefile and the Dockerfile set them through -ldflags.
var version, revision = "unknown", "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal, restore the default handling: a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", programName, err)
		os.Exit(1)
	}
}

// command is main without the process: it takes the arguments, and returns a one-line
// error.
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

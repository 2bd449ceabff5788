// Command kluster-operator runs the operator of the kind Kluster: for each Kluster
// it keeps a managed Kubernetes cluster in a cloud as the Kluster's spec says,
// puts its kubeconfig into a Secret, and removes it with the Kluster.
//
// It is written with client-go, like stage 2. reconcile.go is what is done for one Kluster; around it are its metadata
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

// programName is in the user agent, in events and in the owners of fields, and names the Lease.
const programName = "kluster-operator"

// version and revision are what the program was built from. The Makefile and the Dockerfile set them through -ldflags.
var version, revision = "unknown", "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the usual handling is back: a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", programName, err)
		os.Exit(1)
	}
}

// command is the program without its process: arguments in, an error of one line out.
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

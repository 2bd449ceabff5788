// Command kluster-operator runs the operator of the kind Kluster: for each Kluster
// it keeps a managed Kubernetes cluster in a cloud as the Kluster's spec says,
// puts its kubeconfig into a Secret, and removes it with the Kluster.
//
// It is written with client-go, like stage 2. New are what is done for one Kluster
// (sync.go, provision.go, finalize.go), the token (token.go), the kubeconfig
// (kubeconfig.go), and the cloud (package cloud, and package digitalocean).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// programName is in the user agent, in events and in the owners of fields.
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
	if flags.version {
		fmt.Fprintf(output, "%s %s (revision %s)\n", programName, version, revision)
		return nil
	}
	config, err := restConfig(flags.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = float32(flags.qps), flags.burst
	return run(ctx, config, flags.options)
}

// restConfig finds the cluster: in the kubeconfig given, else in the files that
// $KUBECONFIG names, else the one whose pod this process is. Unlike kubectl it
// never takes ~/.kube/config, which may name any cluster.
func restConfig(kubeconfig string) (*rest.Config, error) {
	variable := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if kubeconfig == "" && variable == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod")
		}
		return config, err
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig, Precedence: filepath.SplitList(variable)}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("KUBECONFIG=%s holds no kubeconfig: name a file that does", variable)
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return config, nil
}

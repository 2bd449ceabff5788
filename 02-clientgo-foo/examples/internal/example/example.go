// Package example contains the code that the example programs of chapter 2 share: it finds the cluster, handles
// Ctrl-C, and prints an error as one line.
package example

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is the API server and the namespace that an example uses.
type Cluster struct {
	// Config contains the API server's address and our credentials.
	Config *rest.Config
	// Namespace is the only namespace that the example looks at.
	Namespace string
}

// Main runs the example, and cancels its context on Ctrl-C. It passes on the arguments that follow the flags. If
// the example fails, Main prints the error and exits with status 1.
func Main(run func(ctx context.Context, cluster Cluster, arguments []string) error) {
	kubeconfig := flag.String("kubeconfig", os.Getenv(clientcmd.RecommendedConfigPathEnvVar), "`file` that names the cluster")
	namespace := flag.String("namespace", "default", "the `namespace` to look at")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	config, err := restConfig(*kubeconfig)
	if err == nil {
		err = run(ctx, Cluster{Config: config, Namespace: *namespace}, flag.Args())
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

// restConfig reads one kubeconfig, or several with the system's separator between them.
func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return nil, fmt.Errorf("no cluster: type this in `make shell`, or give --kubeconfig")
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(kubeconfig)}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("%s holds no kubeconfig: start a cluster with `make up`", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return config, nil
}

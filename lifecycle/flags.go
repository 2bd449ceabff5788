package lifecycle

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// Flags are the command-line settings that don't belong to a run's [Options]: those for the connection to the API
// server, and whether to print the version.
type Flags struct {
	// Kubeconfig is the file that names the cluster; see RESTConfig.
	Kubeconfig string
	// QPS limits the average number of requests per second to the API server, and Burst is how many can be sent at once.
	// A negative QPS means no limit.
	QPS   float64
	Burst int
	// Version makes the program print its version and exit.
	Version bool
}

// AddFlags adds the flags to a set, and klog's flag -v.
func (f *Flags) AddFlags(set *flag.FlagSet) {
	set.StringVar(&f.Kubeconfig, "kubeconfig", "", "`file` that names the cluster; without it $KUBECONFIG, or the cluster of this pod")
	// By default, the client has no limit: the API server, which knows its own load, divides its capacity among all
	// clients (API Priority and Fairness). With client-go's default of 5 requests per second, 100 resources with two
	// requests each take about 40 s.
	set.Float64Var(&f.QPS, "kube-api-qps", -1, "requests per second to the API server; negative is no limit")
	set.IntVar(&f.Burst, "kube-api-burst", -1, "how many requests can be sent at once, if --kube-api-qps sets a limit")
	set.BoolVar(&f.Version, "version", false, "print the version and exit")

	logging := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(logging)
	set.Var(logging.Lookup("v").Value, "v", "how much to log: 0 for changes and errors, 4 also for retries after expected errors")
}

// Validate returns an error that names the flags to change.
func (f *Flags) Validate() error {
	if f.QPS == 0 || f.QPS > 0 && f.Burst < 1 {
		return fmt.Errorf("--kube-api-qps=%v --kube-api-burst=%d: give a positive rate and a burst of at least 1, or a negative --kube-api-qps for no limit", f.QPS, f.Burst)
	}
	return nil
}

// Parse reads the arguments. It returns flag.ErrHelp after printing the help, and a one-line error if an argument is
// wrong.
func Parse(set *flag.FlagSet, args []string, output io.Writer) error {
	set.SetOutput(io.Discard) // package flag would print all flags after each mistake
	err := set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		set.SetOutput(output)
		set.PrintDefaults()
		return err
	}
	if err == nil && set.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if err != nil {
		return fmt.Errorf("%w: --help lists the flags", err)
	}
	return nil
}

// RESTConfig finds the cluster: that of the given kubeconfig, or else of the files that $KUBECONFIG names, or else of
// the pod in which the process runs. Unlike kubectl, it doesn't fall back on ~/.kube/config, which may name any
// cluster. The configuration has the limits QPS and Burst.
func (f *Flags) RESTConfig() (*rest.Config, error) {
	config, err := f.findCluster()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = float32(f.QPS), f.Burst
	return config, nil
}

func (f *Flags) findCluster() (*rest.Config, error) {
	variable := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if f.Kubeconfig == "" && variable == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod")
		}
		return config, err
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: f.Kubeconfig, Precedence: filepath.SplitList(variable)}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if f.Kubeconfig == "" && clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("KUBECONFIG=%s names no kubeconfig: set it to the path of one", variable)
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return config, nil
}

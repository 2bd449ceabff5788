package manager

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Parse reads the arguments, and validates the options. It adds --version to the flags. If the arguments ask for the
// version or the help, it prints that to the output of the flags, and returns [flag.ErrHelp]. The program's name is that
// of the FlagSet. Any other error is a single line.
func (o *Options) Parse(flags *flag.FlagSet, args []string, version, revision string) error {
	showVersion := flags.Bool("version", false, "print the version and exit")
	output := flags.Output()
	flags.SetOutput(io.Discard) // package flag would print all flags after each mistake
	err := flags.Parse(args)
	flags.SetOutput(output)
	if errors.Is(err, flag.ErrHelp) {
		flags.PrintDefaults()
		return err
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		return fmt.Errorf("%w: --help lists the flags", err)
	}
	if *showVersion {
		fmt.Fprintf(output, "%s %s (revision %s)\n", flags.Name(), version, revision)
		return flag.ErrHelp
	}
	return o.Validate()
}

// SetLogger makes controller-runtime and client-go log as the flags say.
func (o *Options) SetLogger() {
	logger := zap.New(zap.UseFlagOptions(&o.Logging))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger) // for client-go's logs
}

// GetConfig is like controller-runtime's function of that name, except that it doesn't fall back on ~/.kube/config,
// which may name any cluster. It uses the cluster that --kubeconfig or $KUBECONFIG names, or else the cluster of the
// pod in which the process runs.
func GetConfig(flags *flag.FlagSet) (*rest.Config, error) {
	if flags.Lookup(clientconfig.KubeconfigFlagName).Value.String() == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		_, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod")
		}
		if err != nil {
			return nil, fmt.Errorf("find the pod's cluster: %w", err)
		}
	}
	config, err := clientconfig.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return config, nil
}

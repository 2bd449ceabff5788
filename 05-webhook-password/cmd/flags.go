package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/operator-workshop/05-webhook-password/internal/manager"
)

// tellsSecrets is the level from which on client-go logs the bodies of its requests. Zap counts downwards.
const tellsSecrets = zapcore.Level(-8)

// parseFlags reads the arguments and starts logging as they say. Its error is flag.ErrHelp
// after it has printed the help or the version, and otherwise a single line.
func parseFlags(args []string, output io.Writer) (*flag.FlagSet, manager.Options, error) {
	options := manager.Default()
	if err := options.ReadEnvironment(os.Getenv); err != nil {
		return nil, options, err
	}
	// Readable lines without stack traces; --zap-devel=false gives JSON.
	logging := zap.Options{Development: true, Level: zapcore.InfoLevel, StacktraceLevel: zapcore.DPanicLevel}

	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the package would print all flags after each mistake
	clientconfig.RegisterFlags(flags)
	options.AddFlags(flags)
	printVersion := flags.Bool("version", false, "print the version and end")
	logging.BindFlags(flags)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(output)
		flags.PrintDefaults()
		return flags, options, err
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		return flags, options, fmt.Errorf("%w: --help lists the flags", err)
	}
	if *printVersion {
		fmt.Fprintln(output, versionText())
		return flags, options, flag.ErrHelp
	}
	if logging.Level.Enabled(tellsSecrets) {
		return flags, options, fmt.Errorf("--zap-log-level: at most %d: above that client-go logs the bodies of requests, and with them passwords", -tellsSecrets-1)
	}
	logger := zap.New(zap.UseFlagOptions(&logging))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger) // what client-go logs
	return flags, options, options.Validate()
}

// findCluster is controller-runtime's GetConfig, but that it never takes
// ~/.kube/config, which may name any cluster: it takes the one that --kubeconfig
// or $KUBECONFIG names, else that of the pod this process is in.
func findCluster(flags *flag.FlagSet) (*rest.Config, error) {
	given := flags.Lookup(clientconfig.KubeconfigFlagName).Value.String() != "" || os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != ""
	if _, err := rest.InClusterConfig(); !given && err != nil {
		return nil, errors.New("no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod")
	}
	config, err := clientconfig.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return config, nil
}

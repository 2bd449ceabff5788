// Command manager runs the Memcached controller. For each Memcached, the controller keeps a Deployment, a Service
// and, for more than one pod, a PodDisruptionBudget in line with the spec, and reports their state in the status.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
	"example.com/operator-workshop/04-operatorsdk-memcached/internal/controller"
	"example.com/operator-workshop/manager"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")

	// The Makefile and the Dockerfile set the version and the Git revision, through -ldflags.
	version, revision = "unknown", "unknown"
)

const watchNamespace, memcachedImage = "WATCH_NAMESPACE", "MEMCACHED_IMAGE"

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(cachev1alpha1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "memcached-operator: %v\n", err)
		os.Exit(1)
	}
}

// run does the work of main, but returns a one-line error instead of ending the process.
func run(ctx context.Context, args []string, output io.Writer) error {
	options := manager.Default()
	image, err := readEnvironment(&options, os.Getenv)
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("memcached-operator", flag.ContinueOnError)
	flags.SetOutput(output)
	options.AddFlags(flags, "Memcacheds")
	flags.Lookup("namespaces").DefValue = "$" + watchNamespace // for --help
	err = options.Parse(flags, args, version, revision)
	if errors.Is(err, flag.ErrHelp) {
		return nil // the help or the version has been printed
	}
	if err != nil {
		return err
	}
	options.SetLogger()

	config, err := manager.GetConfig(flags)
	if err != nil {
		return err
	}
	if err := options.CheckAddresses(); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, options.ForManager(ctx, ctrl.Options{
		Scheme:           scheme,
		LeaderElectionID: "memcached.example.com",
		Cache:            cache.Options{ByObject: controller.CacheByObject()},
	}))
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}

	err = (&controller.MemcachedReconciler{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Scheme:    mgr.GetScheme(),
		Recorder:  mgr.GetEventRecorder("memcached-operator"),
		Image:     image,
		Now:       time.Now,
	}).SetupWithManager(mgr, ctrlcontroller.Options{MaxConcurrentReconciles: options.MaxConcurrentReconciles})
	if meta.IsNoMatchError(err) {
		return errors.New("the cluster does not know Memcacheds: install the CRD with `make install`")
	}
	if err != nil {
		return fmt.Errorf("set the controller up: %w", err)
	}
	// +kubebuilder:scaffold:builder

	if err := manager.AddProbes(mgr); err != nil {
		return err
	}
	setupLog.Info("Starting the manager", "version", version, "revision", revision)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	setupLog.Info("Stopped")
	return nil
}

// readEnvironment reads two variables that the operator's Deployment may set. WATCH_NAMESPACE
// lists the namespaces to watch, or is empty for all; under the Operator Lifecycle Manager, the list
// comes from an annotation. --namespaces overrides WATCH_NAMESPACE. MEMCACHED_IMAGE is the image for
// a Memcached whose spec names none; if the variable is empty, that image is DefaultImage.
func readEnvironment(options *manager.Options, getenv func(string) string) (image string, err error) {
	//workshop:step 4.17 Read the two variables.
	if list := getenv(watchNamespace); list != "" {
		if err := options.SetNamespaces(list); err != nil {
			return "", fmt.Errorf("%s=%s: %w", watchNamespace, list, err)
		}
	}
	//workshop:step 4.17
	image = getenv(memcachedImage)
	//workshop:step 4.17
	if strings.ContainsFunc(image, unicode.IsSpace) {
		return "", fmt.Errorf("%s=%s: the name of an image has no spaces", memcachedImage, image)
	}
	//workshop:until 4.17 return controller.DefaultImage, nil
	//workshop:step 4.17
	return cmp.Or(image, controller.DefaultImage), nil
}

// Command manager runs the controller of the kind Memcached: for each Memcached
// it keeps a Deployment, a Service and a PodDisruptionBudget as its spec says, and reports in its status.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
	"example.com/operator-workshop/04-operatorsdk-memcached/internal/controller"
	"example.com/operator-workshop/04-operatorsdk-memcached/internal/manager"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

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

// run is the program without its process: arguments in, an error of one line out.
func run(ctx context.Context, args []string, output io.Writer) error {
	flags, options, err := parseFlags(args, output)
	if errors.Is(err, errPrinted) {
		return nil
	}
	if err != nil {
		return err
	}
	restConfig, err := findCluster(flags)
	if err != nil {
		return err
	}
	if err := options.CheckAddresses(); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(restConfig, options.ForManager(scheme))
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}

	err = (&controller.MemcachedReconciler{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Scheme:    mgr.GetScheme(),
		Recorder:  mgr.GetEventRecorder("memcached-operator"),
		Image:     options.Image,
		Now:       time.Now,
	}).SetupWithManager(mgr, ctrlcontroller.Options{MaxConcurrentReconciles: options.MaxConcurrentReconciles})
	if meta.IsNoMatchError(err) {
		return errors.New("the cluster does not know Memcacheds: install them with `make install`")
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

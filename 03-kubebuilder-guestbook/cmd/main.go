// Command manager runs the controller for Guestbooks. For each Guestbook, it maintains
// a Deployment and a Service according to the spec, and reports their state in the Guestbook's status.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
	"example.com/operator-workshop/03-kubebuilder-guestbook/internal/controller"
	"example.com/operator-workshop/manager"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")

	// The Makefile and the Dockerfile set both through -ldflags.
	version, revision = "unknown", "unknown"
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(webappv1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "guestbook-controller: %v\n", err)
		os.Exit(1)
	}
}

// run reads the flags in args, and runs the manager until ctx is done. Only the help and
// the version go to output. An error is a single line.
func run(ctx context.Context, args []string, output io.Writer) error {
	options := manager.Default()
	flags := flag.NewFlagSet("guestbook-controller", flag.ContinueOnError)
	flags.SetOutput(output)
	options.AddFlags(flags, "Guestbooks")
	err := options.Parse(flags, args, version, revision)
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
		LeaderElectionID: "guestbook.my.domain",
		Cache:            cache.Options{ByObject: controller.CacheByObject()},
	}))
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}

	err = (&controller.GuestbookReconciler{
		Client:   mgr.GetClient(),
		Scheme:   mgr.GetScheme(),
		Recorder: mgr.GetEventRecorder("guestbook-controller"),
	}).SetupWithManager(mgr)
	if meta.IsNoMatchError(err) {
		return errors.New("the cluster does not know Guestbooks: install the CRD with `make install`")
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

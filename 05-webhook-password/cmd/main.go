// Command manager runs the controller and the webhooks of the kind Password: for
// each Password it keeps a Secret with a generated password, and reports in its status.
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
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	secretv1alpha1 "example.com/operator-workshop/05-webhook-password/api/v1alpha1"
	"example.com/operator-workshop/05-webhook-password/internal/controller"
	"example.com/operator-workshop/05-webhook-password/internal/manager"
	webhookv1 "example.com/operator-workshop/05-webhook-password/internal/webhook/v1"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(secretv1.AddToScheme(scheme))
	utilruntime.Must(secretv1alpha1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "password-operator: %v\n", err)
		os.Exit(1)
	}
}

// run is the program without its process: arguments in, an error of one line out.
func run(ctx context.Context, args []string, output io.Writer) error {
	flags, options, err := parseFlags(args, output)
	if errors.Is(err, flag.ErrHelp) {
		return nil // the help or the version is printed
	}
	if err != nil {
		return err
	}
	restConfig, err := findCluster(flags)
	if err != nil {
		return err
	}
	webhooks, err := manager.NewWebhooks(options, os.Getenv)
	if err != nil {
		return err
	}
	managerOptions := options.ForManager(scheme)
	managerOptions.WebhookServer = webhooks.Server()
	mgr, err := ctrl.NewManager(restConfig, managerOptions)
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}

	err = (&controller.PasswordReconciler{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Scheme:    mgr.GetScheme(),
		Recorder:  mgr.GetEventRecorder("password-operator"),
		Clock:     clock.RealClock{},
	}).SetupWithManager(mgr, ctrlcontroller.Options{MaxConcurrentReconciles: options.MaxConcurrentReconciles})
	if meta.IsNoMatchError(err) {
		return errors.New("the cluster does not know Passwords: install them with `make install`")
	}
	if err != nil {
		return fmt.Errorf("set the controller up: %w", err)
	}
	if err := webhooks.SetupWithManager(mgr, webhookv1.SetupPasswordWebhookWithManager); err != nil {
		return fmt.Errorf("set the webhooks up: %w", err)
	}
	// +kubebuilder:scaffold:builder

	if err := options.AddProbes(mgr); err != nil {
		return err
	}
	setupLog.Info("Starting the manager", "version", version, "revision", revision)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", options.NameTheFlag(err))
	}
	setupLog.Info("Stopped")
	return nil
}

// Command manager runs the controller and the webhooks for Passwords. For each
// Password, the controller maintains a Secret with a generated password, and
// reports the result in the Password's status.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	secretv1alpha1 "example.com/operator-workshop/05-webhook-password/api/v1alpha1"
	"example.com/operator-workshop/05-webhook-password/internal/controller"
	"example.com/operator-workshop/05-webhook-password/internal/serving"
	webhookv1 "example.com/operator-workshop/05-webhook-password/internal/webhook/v1"
	"example.com/operator-workshop/manager"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")

	// The Makefile and the Dockerfile set these through -ldflags.
	version, revision = "unknown", "unknown"
)

// tellsSecrets is the log level at which client-go begins to log the bodies of requests and responses. In zap, lower
// levels are more verbose.
const tellsSecrets = zapcore.Level(-8)

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

// run does the work of main, but returns a one-line error instead of ending the process.
//
//nolint:gocyclo // it reads from top to bottom, like main in every kubebuilder project
func run(ctx context.Context, args []string, output io.Writer) error {
	options, hooks := manager.Default(), serving.Default()
	if err := hooks.ReadEnvironment(os.Getenv); err != nil {
		return err
	}
	flags := flag.NewFlagSet("password-operator", flag.ContinueOnError)
	flags.SetOutput(output)
	options.AddFlags(flags, "Passwords")
	hooks.AddFlags(flags)
	err := options.Parse(flags, args, version, revision)
	if errors.Is(err, flag.ErrHelp) {
		return nil // the help or the version has been printed
	}
	if err != nil {
		return err
	}
	if err := hooks.Validate(); err != nil {
		return err
	}
	if options.Logging.Level.Enabled(tellsSecrets) {
		return fmt.Errorf("--zap-log-level: must be at most %d: at higher levels, client-go logs the bodies of requests, and so passwords", -tellsSecrets-1)
	}
	options.SetLogger()

	config, err := manager.GetConfig(flags)
	if err != nil {
		return err
	}
	if err := options.CheckAddresses(); err != nil {
		return err
	}
	if err := hooks.CheckAddress(); err != nil {
		return err
	}
	webhooks, err := serving.NewWebhooks(hooks, options.TLSOpts())
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, options.ForManager(ctx, ctrl.Options{
		Scheme:           scheme,
		WebhookServer:    webhooks.Server(),
		LeaderElectionID: "password.example.com",
		Cache:            cache.Options{ByObject: controller.CacheByObject()},
	}))
	if err != nil {
		return fmt.Errorf("create the manager: %w", err)
	}

	err = (&controller.PasswordReconciler{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Scheme:    mgr.GetScheme(),
		Recorder:  mgr.GetEventRecorder("password-operator"),
		Clock:     clock.RealClock{},
	}).SetupWithManager(mgr, ctrlcontroller.Options{MaxConcurrentReconciles: options.MaxConcurrentReconciles})
	if meta.IsNoMatchError(err) {
		return errors.New("the cluster does not know Passwords: install the CRD with `make install`")
	}
	if err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	if err := webhooks.SetupWithManager(mgr, webhookv1.SetupPasswordWebhookWithManager); err != nil {
		return fmt.Errorf("set up the webhooks: %w", err)
	}
	// +kubebuilder:scaffold:builder

	setupLog.Info("Starting the manager", "version", version, "revision", revision)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	setupLog.Info("Stopped")
	return nil
}

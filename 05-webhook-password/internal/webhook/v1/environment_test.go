package v1_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	secretv1alpha1 "example.com/operator-workshop/05-webhook-password/api/v1alpha1"
	webhookv1 "example.com/operator-workshop/05-webhook-password/internal/webhook/v1"
	"example.com/operator-workshop/operatortest/testcluster"
)

const (
	// waitTimeout bounds every wait. The API server reads changed policies once a second.
	waitTimeout  = 20 * time.Second
	pollInterval = 20 * time.Millisecond

	// admissionLabel is a label of namespaces. It says which admission applies to the Passwords in them.
	admissionLabel = "admission"
	byWebhooks     = "webhooks"
	byPolicies     = "policies"
	byNone         = "none"
)

// environment is a cluster with a namespace for the webhooks, one for the policies, and one for neither. It depends on
// no test framework, because a benchmark uses it, too.
type environment struct {
	testcluster.Cluster
	// definition is the installed CRD, which contains the address of the webhook server, and its CA.
	definition *apiextensionsv1.CustomResourceDefinition
	warnings   *warnings

	stopServer context.CancelFunc
	// ended is closed when the webhook server has ended, and failure is the error that it returned.
	ended   chan struct{}
	failure error
	created []client.Object
}

func newEnvironment() *environment {
	return &environment{
		Cluster:  testcluster.Cluster{CRDs: []string{"../../../config/crd/bases"}, Scheme: newScheme()},
		warnings: &warnings{},
	}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(secretv1.AddToScheme(scheme))
	utilruntime.Must(secretv1alpha1.AddToScheme(scheme))
	return scheme
}

// start starts the cluster and the webhook server, and creates the namespaces. No admission applies yet.
func (e *environment) start(ctx context.Context) error {
	if err := e.Start(ctx); err != nil {
		return err
	}
	if err := e.startServer(ctx); err != nil {
		return err
	}
	for _, name := range []string{byWebhooks, byPolicies, byNone} {
		if err := e.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	e.definition = &apiextensionsv1.CustomResourceDefinition{}
	return e.Client.Get(ctx, client.ObjectKey{Name: "passwords." + secretv1.SchemeGroupVersion.Group}, e.definition)
}

// startServer serves the webhooks as the operator does, in a manager without controllers.
func (e *environment) startServer(ctx context.Context) error {
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host: e.Serving.Host, Port: e.Serving.Port, CertDir: e.Serving.CertDir,
	})
	mgr, err := ctrl.NewManager(e.Config, ctrl.Options{
		Scheme: e.Scheme, WebhookServer: server, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err != nil {
		return fmt.Errorf("create a manager: %w", err)
	}
	if err := webhookv1.SetupPasswordWebhookWithManager(mgr); err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	e.stopServer, e.ended = stop, make(chan struct{})
	go func() {
		defer close(e.ended)
		e.failure = mgr.Start(running)
	}()
	err = wait.PollUntilContextTimeout(ctx, pollInterval, waitTimeout, true, func(context.Context) (bool, error) {
		select {
		case <-e.ended: // it will never start, so don't wait
			return false, fmt.Errorf("the manager has ended: %w", e.failure)
		default:
			return server.StartedChecker()(nil) == nil, nil
		}
	})
	if err != nil {
		return fmt.Errorf("wait for the webhook server: %w", err)
	}
	return nil
}

// askWebhooksAndPolicies installs copies of config/webhook and config/policies, each for one namespace, and labels the
// two namespaces.
func (e *environment) askWebhooksAndPolicies(ctx context.Context) error {
	copies, err := e.readCopies(ctx)
	if err != nil {
		return err
	}
	for _, object := range copies {
		if err := e.create(ctx, object); err != nil {
			return err
		}
	}
	for _, name := range []string{byWebhooks, byPolicies} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, admissionLabel, name))
		if err := e.Client.Patch(ctx, namespace, patch); err != nil {
			return fmt.Errorf("label the namespace %s: %w", name, err)
		}
	}
	return nil
}

func (e *environment) url(path string) string {
	return "https://" + net.JoinHostPort(e.Serving.Host, strconv.Itoa(e.Serving.Port)) + path
}

// create creates an object, which stop will delete.
func (e *environment) create(ctx context.Context, object client.Object) error {
	if err := e.Client.Create(ctx, object); err != nil {
		return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
	}
	e.created = append(e.created, object)
	return nil
}

// stop undoes start and askWebhooksAndPolicies. It deletes the objects that they created, in case the cluster is not
// the test's own.
func (e *environment) stop(ctx context.Context) error {
	var errs []error
	for _, object := range e.created {
		errs = append(errs, client.IgnoreNotFound(e.Client.Delete(ctx, object)))
	}
	if e.stopServer != nil {
		e.stopServer()
		errs = append(errs, e.awaitServer())
	}
	return errors.Join(append(errs, e.Stop())...)
}

func (e *environment) awaitServer() error {
	select {
	case <-e.ended:
		return e.failure
	case <-time.After(waitTimeout):
		return errors.New("the webhook server has not ended")
	}
}

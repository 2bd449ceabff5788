package controller_test

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	secretv1alpha1 "example.com/operator-workshop/05-webhook-password/api/v1alpha1"
	webhookv1 "example.com/operator-workshop/05-webhook-password/internal/webhook/v1"
	"example.com/operator-workshop/operatortest/testcluster"
	// +kubebuilder:scaffold:imports
)

var (
	scheme = newScheme()
	logger = newLogger()
	// `make manifests` builds these webhook configurations from config/local.
	cluster = &testcluster.Cluster{CRDs: operator.CRDs, Webhooks: []string{"../serving/webhooks.yaml"}, Scheme: scheme}
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(logger)
	klog.SetLogger(logger)
	RunSpecs(t, "Password")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	DeferCleanup(cluster.Stop)
	Expect(cluster.Start(ctx)).To(Succeed())
	watchDisclosures()
	exemptNamespaces(ctx)
	serveWebhooks(ctx)
})

// serveWebhooks runs the webhook server in a manager without controllers until the suite ends.
func serveWebhooks(ctx context.Context) {
	GinkgoHelper()
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host: cluster.Serving.Host, Port: cluster.Serving.Port, CertDir: cluster.Serving.CertDir,
	})
	mgr, err := ctrl.NewManager(cluster.Config, ctrl.Options{
		Scheme: scheme, WebhookServer: server, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logger,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(webhookv1.SetupPasswordWebhookWithManager(mgr)).To(Succeed())
	running, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var failure error
	go func() {
		defer close(ended)
		failure = mgr.Start(running)
	}()
	DeferCleanup(func() {
		stop()
		Eventually(ended).WithTimeout(convergeTimeout).Should(BeClosed(), "the webhook server should end")
		Expect(failure).NotTo(HaveOccurred(), "the webhook server should end without an error")
	})
	Eventually(func() error {
		select {
		case <-ended:
			Expect(failure).NotTo(HaveOccurred(), "the webhook server can't start") // ends the suite: waiting won't help
		default:
		}
		return server.StartedChecker()(nil)
	}).WithContext(ctx).WithTimeout(convergeTimeout).Should(Succeed(), "the webhook server should start")
}

// exemptNamespaces makes the admission webhooks skip the namespaces that namespaceWithoutWebhooks creates.
func exemptNamespaces(ctx context.Context) {
	GinkgoHelper()
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	mutating.Name, validating.Name = "password-operator-local-mutating-webhook-configuration", "password-operator-local-validating-webhook-configuration"
	change := fmt.Appendf(nil, `[{"op":"add","path":"/webhooks/0/namespaceSelector","value":{"matchExpressions":[{"key":%q,"operator":"DoesNotExist"}]}}]`, withoutWebhooksLabel)
	for _, configuration := range []client.Object{mutating, validating} {
		Expect(cluster.Client.Patch(ctx, configuration, client.RawPatch(types.JSONPatchType, change))).To(Succeed())
	}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(secretv1.AddToScheme(scheme))
	utilruntime.Must(secretv1alpha1.AddToScheme(scheme))
	return scheme
}

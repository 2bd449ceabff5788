package serving_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	secretv1alpha1 "example.com/operator-workshop/05-webhook-password/api/v1alpha1"
	"example.com/operator-workshop/05-webhook-password/internal/controller"
	"example.com/operator-workshop/05-webhook-password/internal/serving"
	webhookv1 "example.com/operator-workshop/05-webhook-password/internal/webhook/v1"
	"example.com/operator-workshop/operatortest/testcluster"
)

const (
	// waitTimeout bounds each wait.
	waitTimeout = 20 * time.Second
	polling     = 20 * time.Millisecond
)

var (
	scheme = newScheme()
	// Without a Scheme, the test kit sets up no conversion webhook for the CRD: the tests set spec.conversion themselves.
	cluster = &testcluster.Cluster{CRDs: []string{"../../config/crd/bases"}}
	// api reads and writes as an administrator, in both versions.
	api client.Client
)

func TestServing(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "Serving")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	DeferCleanup(cluster.Stop)
	Expect(cluster.Start(ctx)).To(Succeed())
	var err error
	api, err = client.New(cluster.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(secretv1.AddToScheme(scheme))
	utilruntime.Must(secretv1alpha1.AddToScheme(scheme))
	return scheme
}

// process is a manager like the operator's, but runs in a goroutine of the test.
type process struct {
	address string
	health  string
	cancel  context.CancelFunc
	// ended is closed when the manager has ended, and err is the error that it returned.
	ended chan struct{}
	err   error
	dead  atomic.Bool
	// serviced is true if the address that service returns forwards to the process.
	serviced atomic.Bool
	// intercept may answer a request in the API server's place, or return nil to let it through.
	intercept func(*http.Request) (*http.Response, error)
	// hideCRD makes the process get "not found" when it reads or changes the CRD of Passwords.
	hideCRD atomic.Bool
}

// startLocal starts a process with local webhooks. The process ends with the spec, unless stop or kill ends it earlier.
func startLocal(ctx context.Context) *process {
	GinkgoHelper()
	local := newProcess()
	local.startLocal(ctx)
	return local
}

func newProcess() *process {
	return &process{address: freeAddress(), health: freeAddress(), ended: make(chan struct{})}
}

func (p *process) startLocal(ctx context.Context) {
	GinkgoHelper()
	options := serving.Default()
	options.BindAddress = p.address
	webhooks, err := serving.NewWebhooks(options, []func(*tls.Config){func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }})
	Expect(err).NotTo(HaveOccurred())
	p.start(ctx, webhooks.Server(), func(mgr ctrl.Manager) error {
		return webhooks.SetupWithManager(mgr, webhookv1.SetupPasswordWebhookWithManager)
	})
}

func (p *process) start(ctx context.Context, server ctrlwebhook.Server, setup func(ctrl.Manager) error) {
	GinkgoHelper()
	restConfig := rest.CopyConfig(cluster.Config)
	restConfig.Wrap(p.transport)
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: p.health,
		WebhookServer:          server,
		Controller:             config.Controller{SkipNameValidation: new(true)},
		// ByObject and EnableReadYourWritesConsistency are as in an operator that watches all namespaces.
		Cache:  cache.Options{ByObject: controller.CacheByObject()},
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(setup(mgr)).To(Succeed())
	p.run(ctx, mgr)
}

func (p *process) run(ctx context.Context, mgr ctrl.Manager) {
	// ctx is cancelled at the end of the Ginkgo node that starts the process, but the process must run until the spec's
	// cleanup.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	go func() {
		defer close(p.ended)
		p.err = mgr.Start(running)
	}()
	DeferCleanup(func(ctx SpecContext) {
		cancel()
		Eventually(p.ended).WithContext(ctx).WithTimeout(waitTimeout).Should(BeClosed(), "the process must end when it is told to stop")
	})
}

// stop ends the process as SIGTERM does.
func (p *process) stop(ctx context.Context) {
	GinkgoHelper()
	p.cancel()
	Eventually(p.ended).WithContext(ctx).WithTimeout(waitTimeout).Should(BeClosed(), "the process must end when it is told to stop")
	Expect(p.err).NotTo(HaveOccurred())
}

// kill ends the process as SIGKILL does: none of its further requests reaches the API server.
func (p *process) kill() {
	p.dead.Store(true)
	p.cancel()
}

func (p *process) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if p.dead.Load() {
			return nil, errors.New("the process is dead")
		}
		if p.hideCRD.Load() {
			if response, err := withoutCRD(request); response != nil || err != nil {
				return response, err
			}
		}
		if p.intercept != nil {
			if response, err := p.intercept(request); response != nil || err != nil {
				return response, err
			}
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// ready probes the process as a kubelet does.
func (p *process) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.health+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /readyz of the process: %s", response.Status)
	}
	return nil
}

func (p *process) waitReady(ctx context.Context) {
	GinkgoHelper()
	Eventually(p.ready).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed(), "the process must become ready")
}

// freeAddress returns an address that was free a moment ago.
func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

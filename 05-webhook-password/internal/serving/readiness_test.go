package serving_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	"example.com/operator-workshop/05-webhook-password/internal/controller"
	"example.com/operator-workshop/05-webhook-password/internal/serving"
	webhookv1 "example.com/operator-workshop/05-webhook-password/internal/webhook/v1"
	"example.com/operator-workshop/manager"
)

// relistTimeout is long, because after each failed conversion, the API server waits longer before it tries again.
const relistTimeout = time.Minute

var _ = Describe("the only pod of the operator", func() {
	It("becomes ready although no Passwords can be listed until it is ready", func(ctx SpecContext) {
		namespace, folder := cluster.Namespace(ctx), GinkgoT().TempDir()
		pod := newProcess()
		certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)).To(Succeed())
		setConversion(ctx, converter("https://"+pod.service()+convertPath, certificate))
		storeAlpha(ctx, namespace)

		pod.runOperator(ctx, namespace, folder)
		password := newPassword(namespace, "stored-long-ago")
		// Delete it before the process ends, because nothing else can convert it.
		DeferCleanup(func(ctx SpecContext) { Expect(api.Delete(ctx, password)).To(Succeed()) })
		pod.waitReady(ctx)
		pod.serviced.Store(true)
		Eventually(func(g Gomega) {
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(password), password)).To(Succeed())
			g.Expect(password.Status.State).To(Equal(secretv1.StateReady))
		}).WithContext(ctx).WithTimeout(relistTimeout).WithPolling(polling).Should(Succeed(), "the Password should be converted, and reconciled")
	}, SpecTimeout(2*relistTimeout))
})

// storeAlpha creates a Password that is stored in version v1alpha1.
func storeAlpha(ctx context.Context, namespace string) {
	GinkgoHelper()
	setStorage := func(ctx context.Context, version string) {
		GinkgoHelper()
		Eventually(func(ctx context.Context) error {
			found, err := definition(ctx)
			if err != nil {
				return err
			}
			for i := range found.Spec.Versions {
				found.Spec.Versions[i].Storage = found.Spec.Versions[i].Name == version
			}
			return api.Update(ctx, found)
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
	}
	setStorage(ctx, "v1alpha1")
	stored := newAlphaPassword(namespace, "stored-long-ago")
	stored.Spec.Length = 20
	// Until the API server has noticed the change, the create fails, because it needs a conversion.
	Eventually(api.Create).WithArguments(ctx, stored).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
	setStorage(ctx, "v1")
}

// runOperator runs the process as cmd/main.go does in a pod with mounted certificates.
func (p *process) runOperator(ctx context.Context, namespace, folder string) {
	GinkgoHelper()
	options, hooks := manager.Default(), serving.Default()
	options.Namespaces, options.HealthProbeBindAddress = []string{namespace}, p.health
	hooks.Certs, hooks.BindAddress, hooks.CertPath = serving.CertsFiles, p.address, folder
	webhooks, err := serving.NewWebhooks(hooks, options.TLSOpts())
	Expect(err).NotTo(HaveOccurred())
	setup := options.ForManager(ctx, ctrl.Options{Scheme: scheme, Cache: cache.Options{ByObject: controller.CacheByObject()}, WebhookServer: webhooks.Server()})
	setup.Controller.SkipNameValidation = new(true)
	listed := make(chan struct{})
	list := sync.OnceFunc(func() { close(listed) })
	p.intercept = func(request *http.Request) (*http.Response, error) {
		if strings.HasSuffix(request.URL.Path, "/passwords") {
			list()
		}
		return nil, nil
	}
	config := rest.CopyConfig(cluster.Config)
	config.Wrap(p.transport)
	mgr, err := ctrl.NewManager(config, setup)
	Expect(err).NotTo(HaveOccurred())
	reconciler := &controller.PasswordReconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Scheme: scheme, Recorder: mgr.GetEventRecorder("password-operator"), Clock: clock.RealClock{},
	}
	Expect(reconciler.SetupWithManager(mgr, ctrlcontroller.Options{})).To(Succeed())
	Expect(webhooks.SetupWithManager(mgr, webhookv1.SetupPasswordWebhookWithManager)).To(Succeed())
	p.run(ctx, mgr)
	// A cache without informers counts as filled, so wait until it has an informer, which lists Passwords.
	Eventually(listed).WithContext(ctx).WithTimeout(waitTimeout).Should(BeClosed(), "the operator should list Passwords")
}

// service returns an address that forwards to the process once serviced is true, as a Service forwards to a pod
// once the kubelet has found it ready.
func (p *process) service() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(listener.Close)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go p.passOn(connection)
		}
	}()
	return listener.Addr().String()
}

func (p *process) passOn(connection net.Conn) {
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	if !p.serviced.Load() {
		return
	}
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(server, connection) }()
	_, _ = io.Copy(connection, server)
}

package localwebhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/uuid"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	crdName    = "guestbooks.webapp.my.domain"
	configName = "mutating-webhook-configuration"
	mutatePath = "/mutate-webapp-my-domain-v1-guestbook"
	// waitTimeout bounds each wait.
	waitTimeout = 20 * time.Second
)

func TestWebhooksAreRegisteredWhileTheManagerRuns(t *testing.T) {
	g := NewWithT(t)
	process := newProcess(t, newCRD(), newConfiguration()) // with a configuration left by a killed process
	process.start()
	g.Eventually(process.local.ready).WithArguments((*http.Request)(nil)).WithTimeout(waitTimeout).Should(Succeed())

	found := &admissionregistrationv1.MutatingWebhookConfiguration{}
	g.Expect(process.local.client.Get(t.Context(), client.ObjectKey{Name: configName}, found)).To(Succeed())
	config := found.Webhooks[0].ClientConfig
	g.Expect(config.Service).To(BeNil(), "the API server accepts a Service or a URL, but not both")
	g.Expect(*config.URL).To(Equal("https://" + process.local.address + mutatePath))
	g.Expect(call(t.Context(), *config.URL, config.CABundle)).To(Equal("patched"))
	conversion := process.conversion(g)
	g.Expect(conversion.Strategy).To(Equal(apiextensionsv1.WebhookConverter))
	g.Expect(*conversion.Webhook.ClientConfig.URL).To(Equal("https://" + process.local.address + "/convert"))
	g.Expect(conversion.Webhook.ClientConfig.CABundle).To(Equal(config.CABundle))

	process.stop()
	g.Expect(apierrors.IsNotFound(process.local.client.Get(t.Context(), client.ObjectKey{Name: configName}, found))).To(BeTrue(), "the webhook configuration must be deleted when the process ends")
	g.Expect(process.conversion(g)).To(Equal(newCRD().Spec.Conversion), "the conversion must be as the process found it")
}

func TestWhatSomeoneElseHasWrittenIsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	process := newProcess(t, newCRD())
	process.start()
	g.Eventually(process.local.ready).WithArguments((*http.Request)(nil)).WithTimeout(waitTimeout).Should(Succeed())

	other, err := New("127.0.0.1:9444")
	g.Expect(err).NotTo(HaveOccurred())
	configuration, crd := newConfiguration(), newCRD()
	g.Expect(process.local.client.Delete(t.Context(), configuration)).To(Succeed())
	g.Expect(process.local.client.Create(t.Context(), configuration)).To(Succeed())
	g.Expect(process.local.client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(Succeed())
	crd.Spec.Conversion = other.conversion()
	g.Expect(process.local.client.Update(t.Context(), crd)).To(Succeed())

	process.stop()
	g.Expect(process.local.client.Get(t.Context(), client.ObjectKeyFromObject(configuration), configuration)).To(Succeed())
	g.Expect(process.conversion(g)).To(Equal(other.conversion()))
	g.Expect(process.crd(g).Annotations).NotTo(HaveKey(replacedAnnotation), "nothing is left to restore")
}

func TestAKilledProcessLeavesItsConversionToTheNext(t *testing.T) {
	url := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")}, ConversionReviewVersions: []string{"v1"},
	}}
	tests := map[string]struct {
		// killed is how many processes have been killed, one after another.
		killed int
		// meanwhile changes the CRD before the last process starts.
		meanwhile func(*apiextensionsv1.CustomResourceDefinition)
		want      *apiextensionsv1.CustomResourceConversion
	}{
		"one process is killed":      {killed: 1, want: newCRD().Spec.Conversion},
		"three processes are killed": {killed: 3, want: newCRD().Spec.Conversion},
		"the user writes another conversion after the kill": {
			killed: 1, want: url, meanwhile: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Conversion = url.DeepCopy() },
		},
		"the user writes the same conversion again after the kill": {
			killed: 1, want: newCRD().Spec.Conversion, meanwhile: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec = newCRD().Spec },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			crd := newCRD()
			for range test.killed {
				local, err := New("127.0.0.1:9443")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(local.takeConversion(crd)).To(Succeed())
				g.Expect(crd.Spec.Conversion).To(Equal(local.conversion()))
			}
			if test.meanwhile != nil {
				test.meanwhile(crd)
			}
			process := newProcess(t, crd)
			process.start()
			g.Eventually(process.local.ready).WithArguments((*http.Request)(nil)).WithTimeout(waitTimeout).Should(Succeed())
			g.Expect(process.conversion(g)).To(Equal(process.local.conversion()))
			process.stop()
			g.Expect(process.conversion(g)).To(Equal(test.want), "the conversion of a dead process must not be restored, see takeConversion in conversion.go")
			g.Expect(process.crd(g).Annotations).NotTo(HaveKey(replacedAnnotation))
		})
	}
}

func TestARecordThatIsNotJSONIsReported(t *testing.T) {
	g := NewWithT(t)
	crd := newCRD()
	crd.Annotations = map[string]string{replacedAnnotation: "{"}
	process := newProcess(t, crd)
	process.start()
	var err error
	g.Eventually(process.ended).WithTimeout(waitTimeout).Should(Receive(&err))
	g.Expect(err).To(MatchError(ContainSubstring("the CRD " + crdName + ": read the annotation " + replacedAnnotation)))
}

func TestAConflictIsRetried(t *testing.T) {
	g := NewWithT(t)
	process := newProcess(t, newCRD())
	conflicts := 2
	process.local.client = interceptor.NewClient(process.local.client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if conflicts > 0 {
				conflicts--
				concurrent := newCRD()
				g.Expect(c.Get(ctx, client.ObjectKeyFromObject(concurrent), concurrent)).To(Succeed())
				metav1.SetMetaDataLabel(&concurrent.ObjectMeta, "writes", strconv.Itoa(conflicts))
				g.Expect(c.Update(ctx, concurrent)).To(Succeed())
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	process.start()
	g.Eventually(process.local.ready).WithArguments((*http.Request)(nil)).WithTimeout(waitTimeout).Should(Succeed(), "see changeCRD in conversion.go")
	g.Expect(process.crd(g).Labels).To(HaveKeyWithValue("writes", "0"))
	process.stop()
}

func TestWhatSomeoneElseHasRemovedIsNoError(t *testing.T) {
	g := NewWithT(t)
	process := newProcess(t, newCRD())
	process.start()
	g.Eventually(process.local.ready).WithArguments((*http.Request)(nil)).WithTimeout(waitTimeout).Should(Succeed())
	g.Expect(process.local.client.Delete(t.Context(), newConfiguration())).To(Succeed())
	g.Expect(process.local.client.Delete(t.Context(), newCRD())).To(Succeed())
	process.stop()
}

func TestAPartialRegistrationIsUndone(t *testing.T) {
	g := NewWithT(t)
	process := newProcess(t) // without the CRD
	process.start()
	var err error
	g.Eventually(process.ended).WithTimeout(waitTimeout).Should(Receive(&err))
	g.Expect(err).To(MatchError(ContainSubstring("get the CRD "+crdName)), "the manager must end by itself")
	g.Expect(process.local.ready(nil)).NotTo(Succeed())
	err = process.local.client.Get(t.Context(), client.ObjectKey{Name: configName}, &admissionregistrationv1.MutatingWebhookConfiguration{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "see the deferred functions of run in localwebhook.go: %v", err)
}

func TestTheCertificateIsForTheAddressOnly(t *testing.T) {
	tests := map[string]struct{ address, host, other string }{
		"an IPv4 address": {address: "127.0.0.1:9443", host: "127.0.0.1", other: "127.0.0.2"},
		"an IPv6 address": {address: "[::1]:9443", host: "::1", other: "::2"},
		"a name":          {address: "localhost:9443", host: "localhost", other: "example.com"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			local, err := New(test.address)
			g.Expect(err).NotTo(HaveOccurred())
			config := &tls.Config{}
			local.UseCertificate(config)
			shown, err := config.GetCertificate(nil)
			g.Expect(err).NotTo(HaveOccurred())
			certificate, err := x509.ParseCertificate(shown.Certificate[0])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(certificate.VerifyHostname(test.host)).To(Succeed())
			g.Expect(certificate.VerifyHostname(test.other)).NotTo(Succeed())
			g.Expect(certificate.IsCA).To(BeFalse())
		})
	}
}

func TestAnAddressNeedsAPort(t *testing.T) {
	_, err := New("127.0.0.1")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("missing port")))
}

// process is a manager whose webhook server really listens. Only the API server is a fake.
type process struct {
	local   *Local
	manager ctrl.Manager
	ctx     context.Context
	// stop ends the manager, and expects no error in its log: if a webhook can't be unregistered, the manager only
	// logs the error.
	stop  func()
	ended chan error
}

func newProcess(t *testing.T, stored ...client.Object) *process {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	address := listener.Addr().String() // free again once the listener is closed
	g.Expect(listener.Close()).To(Succeed())
	host, text, err := net.SplitHostPort(address)
	g.Expect(err).NotTo(HaveOccurred())
	port, err := strconv.Atoi(text)
	g.Expect(err).NotTo(HaveOccurred())

	local, err := New(address)
	g.Expect(err).NotTo(HaveOccurred())
	server := webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){local.UseCertificate}})
	server.Register(mutatePath, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "patched") }))
	known := runtime.NewScheme()
	g.Expect(scheme.AddToScheme(known)).To(Succeed())
	logged := make(chan string, 100)
	mgr, err := ctrl.NewManager(&rest.Config{Host: "127.0.0.1:1"}, ctrl.Options{
		Scheme: known, WebhookServer: server, Metrics: metricsserver.Options{BindAddress: "0"},
		Logger: funcr.New(func(_, line string) {
			if strings.Contains(line, `"error"=`) {
				logged <- line
			}
		}, funcr.Options{}),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(local.SetupWithManager(mgr, newConfiguration(), nil, crdName)).To(Succeed())
	local.client = newAPIServer(known, stored...)

	ctx, cancel := context.WithCancel(t.Context())
	started := &process{local: local, manager: mgr, ctx: ctx, ended: make(chan error, 1)}
	started.stop = func() {
		cancel()
		var err error
		g.Eventually(started.ended).WithTimeout(waitTimeout).Should(Receive(&err), "the manager must end when it is told to")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(logged).NotTo(Receive(), "see ignoreChanged in localwebhook.go")
	}
	t.Cleanup(cancel)
	return started
}

func (p *process) start() { go func() { p.ended <- p.manager.Start(p.ctx) }() }

func (p *process) crd(g *WithT) *apiextensionsv1.CustomResourceDefinition {
	crd := newCRD()
	g.Expect(p.local.client.Get(context.Background(), client.ObjectKeyFromObject(crd), crd)).To(Succeed())
	return crd
}

func (p *process) conversion(g *WithT) *apiextensionsv1.CustomResourceConversion {
	return p.crd(g).Spec.Conversion
}

// newAPIServer returns controller-runtime's fake client, and adds what it lacks: UIDs, and deletions that fail if the
// object does not have the UID that the request demands, or if the context has ended.
func newAPIServer(known *runtime.Scheme, stored ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(known).WithObjects(stored...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			object.SetUID(types.UID(uuid.NewString()))
			return c.Create(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			found := object.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
				return err
			}
			wanted := (&client.DeleteOptions{}).ApplyOptions(options).Preconditions
			if wanted != nil && *wanted.UID != found.GetUID() {
				return apierrors.NewConflict(admissionregistrationv1.Resource(""), object.GetName(), errors.New("another UID"))
			}
			return c.Delete(ctx, object)
		},
	}).Build()
}

func newCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: crdName},
		Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}},
	}
}

func newConfiguration() *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configName},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mguestbook-v1.kb.io",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: "system", Name: "webhook-service", Path: new(mutatePath)},
			},
		}},
	}
}

// call sends a request like an API server that trusts only the CA in caBundle.
func call(ctx context.Context, url string, caBundle []byte) (string, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caBundle)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := (&http.Client{Transport: transport, Timeout: waitTimeout}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

package serving_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"example.com/operator-workshop/05-webhook-password/internal/serving"
	webhookv1 "example.com/operator-workshop/05-webhook-password/internal/webhook/v1"
)

// The names of the deployed webhook configurations.
const (
	deployedMutating   = "password-operator-mutating-webhook-configuration"
	deployedValidating = "password-operator-validating-webhook-configuration"
)

var _ = Describe("rotated webhooks", func() {
	It("are served only after the certificates are mounted", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "webhook-server-cert"}}
		Expect(api.Create(ctx, secret)).To(Succeed())
		rotated := newProcess()
		deploy(ctx, rotated.address)
		folder := GinkgoT().TempDir()

		host, port, err := net.SplitHostPort(rotated.address)
		Expect(err).NotTo(HaveOccurred())
		number, err := strconv.Atoi(port)
		Expect(err).NotTo(HaveOccurred())
		calls := make(chan struct{}, 1)
		var operator client.Client
		server := ctrlwebhook.NewServer(ctrlwebhook.Options{Host: host, Port: number, CertDir: folder})
		rotated.start(ctx, server, func(mgr ctrl.Manager) error {
			operator = mgr.GetClient()
			return serving.Rotated{
				Secret:  client.ObjectKeyFromObject(secret),
				CertDir: folder, CertName: "tls.crt", KeyName: "tls.key",
				DNSNames: []string{"localhost", "password-operator-webhook-service." + namespace + ".svc"},
			}.SetupWithManager(mgr, server, func(mgr ctrl.Manager) error {
				calls <- struct{}{}
				return webhookv1.SetupPasswordWebhookWithManager(mgr)
			})
		})

		Eventually(func(ctx context.Context) (map[string][]byte, error) {
			return secret.Data, api.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(polling).Should(And(HaveKey("tls.crt"), HaveKey("tls.key"), HaveKey("ca.crt")), "the library must fill the Secret")
		Expect(rotated.ready(ctx)).To(MatchError(ContainSubstring("500")), "nothing is mounted yet")
		Expect(calls).NotTo(Receive(), "a webhook server that finds no files would end the process")

		mount(secret, folder)
		rotated.waitReady(ctx)
		Expect(calls).To(Receive())
		listing, cancel := context.WithTimeout(ctx, waitTimeout)
		defer cancel()
		Expect(operator.List(listing, &corev1.SecretList{}, client.InNamespace(namespace))).To(Succeed(), "the operator must not wait for the certificates' Secret, which its cache doesn't hold")
		Eventually(served).WithContext(ctx).WithArguments(namespace).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
		rotated.stop(ctx)
	}, SpecTimeout(specTimeout))
})

// mount writes the Secret's files, as a kubelet does.
func mount(secret *corev1.Secret, folder string) {
	GinkgoHelper()
	for _, name := range []string{"ca.crt", "tls.key", "tls.crt"} {
		Expect(os.WriteFile(filepath.Join(folder, name), secret.Data[name], 0o600)).To(Succeed())
	}
}

// deploy creates the webhook configurations and sets the CRD's conversion, without a CA, as they are before the pods of
// a deployment start. The address in each is a URL with the host localhost, because no Service routes to the test
// process.
func deploy(ctx context.Context, address string) {
	GinkgoHelper()
	_, port, err := net.SplitHostPort(address)
	Expect(err).NotTo(HaveOccurred())
	base := "https://localhost:" + port
	setConversion(ctx, converter(base+convertPath, nil))

	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"secret.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"passwords"}},
	}}
	none, versions := admissionregistrationv1.SideEffectClassNone, []string{"v1"}
	configurations := []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: deployedMutating},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "mpassword-v1.kb.io", Rules: rules, SideEffects: &none, AdmissionReviewVersions: versions,
				ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new(base + mutatePath)},
			}},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: deployedValidating},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "vpassword-v1.kb.io", Rules: rules, SideEffects: &none, AdmissionReviewVersions: versions,
				ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new(base + validatePath)},
			}},
		},
	}
	for _, configuration := range configurations {
		Expect(api.Create(ctx, configuration)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(api.Delete(ctx, configuration))).To(Succeed())
		})
	}
}

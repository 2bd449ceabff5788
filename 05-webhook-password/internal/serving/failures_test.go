package serving_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// faultyName is the name of the configuration for a faulty server, and of the webhook in it.
const faultyName = "faulty.example.com"

// The prefixes that the API server of Kubernetes 1.37 puts before the reason why a call to a webhook fails.
const (
	admissionFailed = `Internal error occurred: failed calling webhook "faulty.example.com": `
	conversionOf    = `conversion webhook for secret.example.com/%s, Kind=Password failed: `
	// The API server reports an object that can't be converted as if its bytes in etcd were corrupt. They are not.
	readFailed = `Internal error occurred: StorageError: corrupt object, Code: 7, Key: /secret.example.com/passwords/NAMESPACE/stored, ` +
		`ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=REVISION: `
)

// faultTimeout allows for a conversion webhook that never answers: the API server waits for 30 seconds, and has no
// setting for that.
const faultTimeout = 90 * time.Second

var _ = Describe("the API server", func() {
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		It("reports why a call to a webhook fails: "+name, func(ctx SpecContext) {
			namespace, fault := cluster.Namespace(ctx), faults[name]
			Expect(api.Create(ctx, newPassword(namespace, "stored"))).To(Succeed())
			url, bundle := fault.serve()
			create := func(ctx context.Context) string {
				return normalise(api.Create(ctx, newPassword(namespace, "asked"), client.DryRunAll))
			}

			By("refusing a request if the webhook has failurePolicy Fail")
			register(ctx, url, bundle, admissionregistrationv1.Fail)
			eventually(ctx, create).Should(Equal(admissionFailed + callFailed(fault.admission)))

			By("accepting a request if the webhook has failurePolicy Ignore")
			before, err := failedOpen(ctx)
			Expect(err).NotTo(HaveOccurred())
			register(ctx, url, bundle, admissionregistrationv1.Ignore)
			eventually(ctx, func(ctx context.Context) string {
				answer := create(ctx)
				if after, err := failedOpen(ctx); err != nil || after == before {
					return fmt.Sprintf("%s, but the API server's metrics don't show that it has ignored a failed call (error: %v)", answer, err)
				}
				return answer
			}).Should(Equal("no error"))
			deregister(ctx)

			By("refusing to read an object in a version other than the stored one")
			setConversion(ctx, converter(url, bundle))
			reason := cmp.Or(fault.conversion, fault.admission)
			eventually(ctx, func(ctx context.Context) string {
				return normalise(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "stored"}, newAlphaPassword("", "")))
			}).Should(Equal(readFailed + fmt.Sprintf(conversionOf, "v1") + reason))
			Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "stored"}, newPassword("", ""))).To(Succeed(), "a read in the stored version needs no conversion")
		}, SpecTimeout(faultTimeout))
	}
})

// eventually waits until the API server has noticed a change to a webhook configuration or the CRD.
func eventually(ctx context.Context, what func(context.Context) string) AsyncAssertion {
	return Eventually(what).WithContext(ctx).WithTimeout(faultTimeout).WithPolling(polling)
}

// callFailed adds the prefix that the API server puts before the reason why a call failed. A reason that begins with
// "received invalid" gets no prefix.
func callFailed(reason string) string {
	if regexp.MustCompile(`^received invalid`).MatchString(reason) {
		return reason
	}
	return "failed to call webhook: " + reason
}

// register makes the API server call the URL for each new Password, with a timeout of
// one second.
func register(ctx context.Context, url string, bundle []byte, policy admissionregistrationv1.FailurePolicyType) {
	GinkgoHelper()
	deregister(ctx)
	rule := admissionregistrationv1.Rule{APIGroups: []string{"secret.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"passwords"}}
	Expect(api.Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: faultyName},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    faultyName,
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: bundle},
			FailurePolicy:           &policy,
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          new(int32(1)),
			AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionregistrationv1.RuleWithOperations{
				{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create}, Rule: rule},
			},
		}},
	})).To(Succeed())
	DeferCleanup(deregister)
}

func deregister(ctx context.Context) {
	GinkgoHelper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: faultyName}}
	Expect(client.IgnoreNotFound(api.Delete(ctx, configuration))).To(Succeed())
}

func converter(url string, bundle []byte) *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: bundle},
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

var failOpenCount = regexp.MustCompile(`apiserver_admission_webhook_fail_open_count\{name="faulty\.example\.com",type="validating"\} (\S+)`)

// failedOpen returns how often the API server has ignored the faulty webhook, according to its metrics.
func failedOpen(ctx context.Context) (count float64, err error) {
	clients, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		return 0, err
	}
	metrics, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	found := failOpenCount.FindSubmatch(metrics)
	if found == nil {
		return 0, nil
	}
	_, err = fmt.Sscan(string(found[1]), &count)
	return count, err
}

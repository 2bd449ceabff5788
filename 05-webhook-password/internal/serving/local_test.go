package serving_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const specTimeout = time.Minute

// noConversion is the value that the API server fills in if a CRD has no spec.conversion.
var noConversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}

// byService returns the value of spec.conversion for a deployed operator.
func byService() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
				Namespace: "password-operator-system", Name: "password-operator-webhook-service", Path: new("/convert"), Port: new(int32(443)),
			}},
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

var _ = Describe("local webhooks", func() {
	DescribeTable("answer while the process is running, and are unregistered when it ends",
		func(ctx SpecContext, conversion *apiextensionsv1.CustomResourceConversion) {
			namespace := cluster.Namespace(ctx)
			setConversion(ctx, conversion)
			local := startLocal(ctx)
			local.waitReady(ctx)
			Eventually(served).WithContext(ctx).WithArguments(namespace).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
			local.stop(ctx)
			expectNothingLeft(ctx, conversion)
		},
		Entry("for a CRD without a conversion", SpecTimeout(specTimeout), noConversion),
		Entry("for a CRD with a Service that converts", SpecTimeout(specTimeout), byService()),
	)

	It("are not ready before the API server knows them", func(ctx SpecContext) {
		local := newProcess()
		held := make(chan struct{})
		local.intercept = func(request *http.Request) (*http.Response, error) {
			if strings.Contains(request.URL.Path, "customresourcedefinitions") {
				<-held
			}
			return nil, nil
		}
		local.startLocal(ctx)
		Eventually(func(ctx context.Context) error {
			_, err := validating(ctx)
			return err
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
		Expect(local.ready(ctx)).To(MatchError(ContainSubstring("500")), "the conversion is not registered yet")
		close(held)
		local.waitReady(ctx)
	}, SpecTimeout(specTimeout))

	It("outlive a process that is killed, and are replaced by the next one", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		setConversion(ctx, noConversion)
		first := startLocal(ctx)
		first.waitReady(ctx)
		first.kill()
		Eventually(first.ended).WithContext(ctx).WithTimeout(waitTimeout).Should(BeClosed())
		left, err := validating(ctx)
		Expect(err).NotTo(HaveOccurred(), "a killed process can't unregister")
		Expect(*left.Webhooks[0].ClientConfig.URL).To(ContainSubstring(first.address))
		Expect(served(ctx, namespace)).To(MatchError(ContainSubstring("connection refused")))

		second := startLocal(ctx)
		second.waitReady(ctx)
		Eventually(served).WithContext(ctx).WithArguments(namespace).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
		second.stop(ctx)
		expectNothingLeft(ctx, noConversion)
	}, SpecTimeout(specTimeout))

	It("are left alone by a process that stops after another one has registered its own", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		setConversion(ctx, noConversion)
		first := startLocal(ctx)
		first.waitReady(ctx)
		second := startLocal(ctx)
		second.waitReady(ctx)
		first.stop(ctx)
		Eventually(served).WithContext(ctx).WithArguments(namespace).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
		found, err := validating(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(*found.Webhooks[0].ClientConfig.URL).To(ContainSubstring(second.address))
	}, SpecTimeout(specTimeout))

	It("survive a second process that finds the port in use", func(ctx SpecContext) {
		first := startLocal(ctx)
		first.waitReady(ctx)
		before, err := validating(ctx)
		Expect(err).NotTo(HaveOccurred())
		second := newProcess()
		second.address = first.address
		second.startLocal(ctx)
		Eventually(second.ended).WithContext(ctx).WithTimeout(waitTimeout).Should(BeClosed())
		Expect(second.err).To(MatchError(ContainSubstring("address already in use")))
		after, err := validating(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(after.UID).To(Equal(before.UID), "the second process has registered nothing, so it must remove nothing")
	}, SpecTimeout(specTimeout))

	It("leave spec.conversion alone if someone else has changed it meanwhile", func(ctx SpecContext) {
		setConversion(ctx, noConversion)
		local := startLocal(ctx)
		local.waitReady(ctx)
		setConversion(ctx, byService())
		local.stop(ctx)
		expectNothingLeft(ctx, byService())
	}, SpecTimeout(specTimeout))

	It("cause no error at the end of the process if they were removed with the CRD", func(ctx SpecContext) {
		setConversion(ctx, noConversion)
		local := startLocal(ctx)
		local.waitReady(ctx)
		for _, configuration := range []client.Object{
			&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: mutatingName}},
			&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: validatingName}},
		} {
			Expect(api.Delete(ctx, configuration)).To(Succeed())
		}
		local.hideCRD.Store(true)
		local.stop(ctx)
	}, SpecTimeout(specTimeout))

	It("are unregistered when only some of them could be registered", func(ctx SpecContext) {
		local := newProcess()
		local.hideCRD.Store(true)
		local.startLocal(ctx)
		Eventually(local.ended).WithContext(ctx).WithTimeout(waitTimeout).Should(BeClosed())
		Expect(local.err).To(MatchError(ContainSubstring("get the CRD passwords.secret.example.com")))
		expectNothingLeft(ctx, noConversion)
	}, SpecTimeout(specTimeout))
})

// withoutCRD answers a request for the CRD of Passwords with "not found", and returns nil for any other request.
func withoutCRD(request *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(request.URL.Path, "/customresourcedefinitions/"+crdName) {
		return nil, nil
	}
	status := apierrors.NewNotFound(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, crdName).Status()
	body, err := json.Marshal(status)
	return &http.Response{
		StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(body))), Request: request,
	}, err
}

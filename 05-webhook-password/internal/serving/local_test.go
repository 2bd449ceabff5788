package serving_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/05-webhook-password/internal/serving"
)

const specTimeout = time.Minute

// noConversion is the stanza that the API server fills in if a definition has none.
var noConversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}

// byService is the stanza of a deployed operator.
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
	DescribeTable("answer while the process runs, and are taken back at its end",
		func(ctx SpecContext, conversion *apiextensionsv1.CustomResourceConversion) {
			namespace := cluster.Namespace(ctx)
			setConversion(ctx, conversion)
			local := startLocal(ctx, day)
			local.waitReady(ctx)
			Eventually(served).WithContext(ctx).WithArguments(namespace).WithTimeout(patience).WithPolling(polling).Should(Succeed())
			local.stop(ctx)
			expectNothingLeft(ctx, conversion)
		},
		Entry("of a kind that nobody converted", SpecTimeout(specTimeout), noConversion),
		Entry("of a kind that a Service converted", SpecTimeout(specTimeout), byService()),
	)

	It("are not ready before the API server knows them", func(ctx SpecContext) {
		local := newProcess()
		held := make(chan struct{})
		server, err := serving.NewLocal(serving.LocalOptions{Address: local.address, CheckInterval: checkInterval})
		Expect(err).NotTo(HaveOccurred())
		local.meddle = func(request *http.Request) (*http.Response, error) {
			if strings.Contains(request.URL.Path, "customresourcedefinitions") {
				<-held
			}
			return nil, nil
		}
		local.start(ctx, server.ServerOptions(), server.SetupWithManager)
		Eventually(func(ctx context.Context) error {
			_, err := validating(ctx)
			return err
		}).WithContext(ctx).WithTimeout(patience).WithPolling(polling).Should(Succeed())
		Expect(local.ready(ctx)).To(MatchError(ContainSubstring("500")), "the conversion is not registered yet")
		close(held)
		local.waitReady(ctx)
	}, SpecTimeout(specTimeout))

	It("outlive a kill, and are taken over by the next process", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		first := startLocal(ctx, day)
		first.waitReady(ctx)
		first.kill()
		Eventually(first.ended).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
		left, err := validating(ctx)
		Expect(err).NotTo(HaveOccurred(), "who is killed takes nothing back")
		Expect(*left.Webhooks[0].ClientConfig.URL).To(ContainSubstring(first.address))
		Expect(served(ctx, namespace)).To(MatchError(ContainSubstring("connection refused")))

		second := startLocal(ctx, day)
		second.waitReady(ctx)
		Eventually(served).WithContext(ctx).WithArguments(namespace).WithTimeout(patience).WithPolling(polling).Should(Succeed())
		second.stop(ctx)
		expectNothingLeft(ctx, noConversion)
	}, SpecTimeout(specTimeout))

	It("are left alone by a process that another one has taken them over from", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		first := startLocal(ctx, day)
		first.waitReady(ctx)
		second := startLocal(ctx, day)
		second.waitReady(ctx)
		Eventually(first.ended).WithContext(ctx).WithTimeout(patience).Should(BeClosed(), "two processes that put each other's changes right would never end")
		Expect(first.err).To(MatchError("the webhooks have been taken over by another process, at " + second.address))
		Eventually(served).WithContext(ctx).WithArguments(namespace).WithTimeout(patience).WithPolling(polling).Should(Succeed())
		second.stop(ctx)
		expectNothingLeft(ctx, noConversion)
	}, SpecTimeout(specTimeout))

	It("survive a process that finds its port taken", func(ctx SpecContext) {
		first := startLocal(ctx, day)
		first.waitReady(ctx)
		before, err := validating(ctx)
		Expect(err).NotTo(HaveOccurred())
		second := newProcess()
		second.address = first.address
		second.startLocal(ctx, day)
		Eventually(second.ended).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
		Expect(second.err).To(MatchError(ContainSubstring("address already in use")))
		after, err := validating(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(after.UID).To(Equal(before.UID), "it has registered nothing, so it has nothing to take back")
	}, SpecTimeout(specTimeout))

	It("give back what somebody has written into spec.conversion meanwhile", func(ctx SpecContext) {
		setConversion(ctx, noConversion)
		local := startLocal(ctx, day)
		local.waitReady(ctx)
		setConversion(ctx, byService())
		Eventually(func(ctx context.Context) (*apiextensionsv1.CustomResourceConversion, error) {
			found, err := definition(ctx)
			return found.Spec.Conversion, err
		}).WithContext(ctx).WithTimeout(patience).WithPolling(polling).ShouldNot(Equal(byService()), "as long as the process runs, it converts")
		local.stop(ctx)
		expectNothingLeft(ctx, byService())
	}, SpecTimeout(specTimeout))

	It("need the definition of Passwords", func(ctx SpecContext) {
		local := newProcess()
		server, err := serving.NewLocal(serving.LocalOptions{Address: local.address})
		Expect(err).NotTo(HaveOccurred())
		local.meddle = withoutDefinition
		local.start(ctx, server.ServerOptions(), server.SetupWithManager)
		Eventually(local.ended).WithContext(ctx).WithTimeout(patience/2).Should(BeClosed(), "trying again is of no use")
		Expect(local.err).To(MatchError("register the webhooks: the cluster does not know Passwords: install them with `make install`"))
		expectNothingLeft(ctx, noConversion)
	}, SpecTimeout(specTimeout))

	DescribeTable("are put right",
		func(ctx SpecContext, spoil func(context.Context) error) {
			namespace := cluster.Namespace(ctx)
			local := startLocal(ctx, day)
			local.waitReady(ctx)
			before := registration(ctx)
			Eventually(spoil).WithContext(ctx).WithTimeout(patience).WithPolling(polling).Should(Succeed())
			Eventually(registration).WithContext(ctx).WithTimeout(patience).WithPolling(polling).Should(Equal(before), "the process must put the registration right")
			Eventually(served).WithContext(ctx).WithArguments(namespace).WithTimeout(patience).WithPolling(polling).Should(Succeed())
			local.stop(ctx)
			expectNothingLeft(ctx, noConversion)
		},
		Entry("when somebody deletes the mutating configuration", SpecTimeout(specTimeout), func(ctx context.Context) error {
			configuration, err := mutating(ctx)
			return errors.Join(err, api.Delete(ctx, configuration))
		}),
		Entry("when somebody deletes the validating configuration", SpecTimeout(specTimeout), func(ctx context.Context) error {
			configuration, err := validating(ctx)
			return errors.Join(err, api.Delete(ctx, configuration))
		}),
		Entry("when somebody exempts a namespace", SpecTimeout(specTimeout), changeValidating(func(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
			configuration.Webhooks[0].NamespaceSelector.MatchLabels = map[string]string{"no": "such"}
		})),
		Entry("when somebody sends the requests elsewhere", SpecTimeout(specTimeout), changeValidating(func(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
			configuration.Webhooks[0].ClientConfig.URL = new("https://127.0.0.1:1/")
		})),
		Entry("when somebody removes the annotations", SpecTimeout(specTimeout), changeValidating(func(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
			configuration.Annotations = nil
		})),
		Entry("when somebody turns the conversion off", SpecTimeout(specTimeout), func(ctx context.Context) error {
			found, err := definition(ctx)
			found.Spec.Conversion = noConversion
			return errors.Join(err, api.Update(ctx, found))
		}),
	)

	It("are looked at without a write when there is nothing to put right", func(ctx SpecContext) {
		local := startLocal(ctx, day)
		local.waitReady(ctx)
		local.requests.reset()
		Eventually(local.requests.reads).WithContext(ctx).WithTimeout(patience).WithPolling(polling).Should(BeNumerically(">=", 9), "three objects in three checks")
		Expect(local.requests.writes()).To(BeZero(), "each write of the definition ends every watch of Passwords")
	}, SpecTimeout(specTimeout))
})

// registration is what a process has told the API server, in a form to compare.
func registration(ctx context.Context) string {
	first, err := mutating(ctx)
	second, err2 := validating(ctx)
	third, err3 := definition(ctx)
	text, err4 := json.Marshal([]any{first.Webhooks, first.Annotations, second.Webhooks, second.Annotations, third.Spec.Conversion, third.Annotations})
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return err.Error()
	}
	return string(text)
}

func changeValidating(change func(*admissionregistrationv1.ValidatingWebhookConfiguration)) func(context.Context) error {
	return func(ctx context.Context) error {
		configuration, err := validating(ctx)
		if err != nil {
			return err
		}
		change(configuration)
		return api.Update(ctx, configuration)
	}
}

// withoutDefinition answers like an API server that has no such definition.
func withoutDefinition(request *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(request.URL.Path, "/customresourcedefinitions/"+serving.Definition) {
		return nil, nil
	}
	status := apierrors.NewNotFound(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, serving.Definition).Status()
	body, err := json.Marshal(status)
	return &http.Response{
		StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(body))), Request: request,
	}, err
}

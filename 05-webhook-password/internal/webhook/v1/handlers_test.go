package v1_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	secretv1alpha1 "example.com/operator-workshop/05-webhook-password/api/v1alpha1"
	webhookv1 "example.com/operator-workshop/05-webhook-password/internal/webhook/v1"
)

const (
	jsonType = "application/json"

	// The paths at which controller-runtime serves the webhooks.
	mutatePath   = "/mutate-secret-example-com-v1-password"
	validatePath = "/validate-secret-example-com-v1-password"
	convertPath  = "/convert"
)

// newHandlers returns the handlers of the webhook server. Tests call them directly, without a server or a cluster.
func newHandlers() (http.Handler, error) {
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{})
	// Only the manager's scheme and its webhook server are used.
	nowhere := &rest.Config{Host: "https://127.0.0.1:1"}
	mgr, err := ctrl.NewManager(nowhere, ctrl.Options{
		Scheme: newScheme(), WebhookServer: server, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err != nil {
		return nil, fmt.Errorf("create a manager: %w", err)
	}
	if err := webhookv1.SetupPasswordWebhookWithManager(mgr); err != nil {
		return nil, err
	}
	return server.WebhookMux(), nil
}

func TestHandlers(t *testing.T) {
	handlers, err := newHandlers()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, name := range slices.Sorted(maps.Keys(cases())) {
		c := cases()[name]
		if c.unasked { // a match condition in config/webhook/match_conditions_validating.yaml decides
			continue
		}
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(c.differs(decide(g, handlers, c))).To(BeEmpty(), "cases_test.go has the expected result: look into internal/webhook/v1")
		})
	}
}

// decide calls the defaulting handler, and then the validating handler with the patched object. Unlike the API server,
// it calls both for every request, even for a deletion.
func decide(g Gomega, handlers http.Handler, c admissionCase) outcome {
	request := requestOf(g, c)
	answer := ask(g, handlers, mutatePath, request)
	g.Expect(answer.Allowed).To(BeTrue(), "the defaulting webhook must not refuse anything")
	request.Object = patched(g, request.Object, answer.Patch)
	answer = ask(g, handlers, validatePath, request)
	result := outcome{warnings: answer.Warnings}
	if !answer.Allowed {
		result.refusal = &apierrors.StatusError{ErrStatus: *answer.Result}
	}
	if request.Object.Raw != nil {
		var object secretv1.Password
		g.Expect(json.Unmarshal(request.Object.Raw, &object)).To(Succeed())
		result.secretName = object.Spec.SecretName
	}
	return result
}

func requestOf(g Gomega, c admissionCase) *admissionv1.AdmissionRequest {
	resource := metav1.GroupVersionResource(secretv1.SchemeGroupVersion.WithResource("passwords"))
	request := &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind(secretv1.SchemeGroupVersion.WithKind("Password")), Resource: resource,
		UserInfo: authenticationv1.UserInfo{Username: c.as}, Namespace: "default",
		Object: rawOf(g, c.new), OldObject: rawOf(g, c.old),
	}
	switch {
	case c.new == nil:
		request.Operation, request.Name = admissionv1.Delete, c.old.GetName()
	case c.old == nil:
		request.Operation, request.Name = admissionv1.Create, c.new.GetName()
	default:
		request.Operation, request.Name = admissionv1.Update, c.new.GetName()
	}
	return request
}

// rawOf returns an object as the API server sends it: in version v1.
func rawOf(g Gomega, object client.Object) runtime.RawExtension {
	if object == nil {
		return runtime.RawExtension{}
	}
	hub, ok := object.(*secretv1.Password)
	if !ok {
		hub = &secretv1.Password{}
		g.Expect(object.(*secretv1alpha1.Password).ConvertTo(hub)).To(Succeed())
	}
	hub.SetGroupVersionKind(secretv1.SchemeGroupVersion.WithKind("Password"))
	raw, err := json.Marshal(hub)
	g.Expect(err).NotTo(HaveOccurred())
	return runtime.RawExtension{Raw: raw}
}

// ask sends a request as the API server does.
func ask(g Gomega, handlers http.Handler, path string, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	review := admissionv1.AdmissionReview{Request: request}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(review)
	g.Expect(err).NotTo(HaveOccurred())
	answer := post(handlers, path, jsonType, body)
	g.Expect(answer.Code).To(Equal(http.StatusOK))
	var answered admissionv1.AdmissionReview
	g.Expect(json.Unmarshal(answer.Body.Bytes(), &answered)).To(Succeed())
	g.Expect(answered.GroupVersionKind()).To(Equal(review.GroupVersionKind()), "the API server accepts no other kind")
	g.Expect(answered.Response).NotTo(BeNil())
	g.Expect(answered.Response.UID).To(Equal(request.UID), "the answer must have the UID of the question")
	return answered.Response
}

func post(handlers http.Handler, path, contentType string, body []byte) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	question := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	question.Header.Set("Content-Type", contentType)
	handlers.ServeHTTP(answer, question)
	return answer
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patched applies the only patch that the defaulting webhook may return.
func patched(g Gomega, object runtime.RawExtension, patch []byte) runtime.RawExtension {
	if len(patch) == 0 {
		return object
	}
	var operations []operation
	g.Expect(json.Unmarshal(patch, &operations)).To(Succeed())
	g.Expect(operations).To(HaveLen(1))
	g.Expect(operations[0].Op).To(Equal("add"))
	g.Expect(operations[0].Path).To(Equal("/spec/secretName"), "the defaulting webhook must not change anything else")
	var content map[string]any
	g.Expect(json.Unmarshal(object.Raw, &content)).To(Succeed())
	content["spec"].(map[string]any)["secretName"] = operations[0].Value
	raw, err := json.Marshal(content)
	g.Expect(err).NotTo(HaveOccurred())
	return runtime.RawExtension{Raw: raw}
}

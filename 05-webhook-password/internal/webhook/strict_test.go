package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

const aPassword = `{"apiVersion":"secret.example.com/v1","kind":"Password","metadata":{"name":"login"},"spec":{}}`

// request is a good one of an operation, and then changed.
func request(operation admissionv1.Operation, change func(*admissionv1.AdmissionRequest)) admissionv1.AdmissionRequest {
	object := runtime.RawExtension{Raw: []byte(aPassword)}
	request := admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind(secretv1.SchemeGroupVersion.WithKind("Password")),
		Name: "login", Operation: operation, Object: object, OldObject: object,
	}
	switch operation {
	case admissionv1.Create:
		request.OldObject = runtime.RawExtension{}
	case admissionv1.Delete:
		request.Object = runtime.RawExtension{}
	}
	if change != nil {
		change(&request)
	}
	return request
}

func TestStrict(t *testing.T) {
	object := func(raw string) func(*admissionv1.AdmissionRequest) {
		return func(r *admissionv1.AdmissionRequest) { r.Object = rawOf(raw) }
	}
	oldObject := func(raw string) func(*admissionv1.AdmissionRequest) {
		return func(r *admissionv1.AdmissionRequest) { r.OldObject = rawOf(raw) }
	}
	tests := map[string]struct {
		operation admissionv1.Operation
		change    func(*admissionv1.AdmissionRequest)
		refused   string
	}{
		"a create":  {operation: admissionv1.Create},
		"an update": {operation: admissionv1.Update},
		"a delete":  {operation: admissionv1.Delete},
		"another kind": {operation: admissionv1.Create, refused: "the request is about kind",
			change: func(r *admissionv1.AdmissionRequest) { r.Kind.Kind = "Secret" }},
		"another group": {operation: admissionv1.Create, refused: "the request is about kind",
			change: func(r *admissionv1.AdmissionRequest) { r.Kind.Group = "example.com" }},
		"another version": {operation: admissionv1.Create, refused: "the request is about kind",
			change: func(r *admissionv1.AdmissionRequest) { r.Kind.Version = "v1alpha1" }},
		"a subresource": {operation: admissionv1.Update, refused: `the request is about the subresource "status"`,
			change: func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" }},
		"a connection":                           {operation: admissionv1.Connect, refused: `the operation is "CONNECT", not one of`},
		"no operation":                           {refused: `the operation is "", not one of`},
		"a create without an object":             {operation: admissionv1.Create, change: object(""), refused: "read object"},
		"a create of a list":                     {operation: admissionv1.Create, change: object("[]"), refused: "read object"},
		"an update to another kind":              {operation: admissionv1.Update, change: object(`{"apiVersion":"v1","kind":"Secret"}`), refused: `object is of kind "/v1, Kind=Secret"`},
		"an update to another version":           {operation: admissionv1.Update, change: object(`{"apiVersion":"secret.example.com/v1alpha1","kind":"Password"}`), refused: "object is of kind"},
		"an update of another kind":              {operation: admissionv1.Update, change: oldObject(`{"apiVersion":"v1","kind":"Secret"}`), refused: `oldObject is of kind "/v1, Kind=Secret"`},
		"an update of nothing":                   {operation: admissionv1.Update, change: oldObject(""), refused: "read oldObject"},
		"a delete of another kind":               {operation: admissionv1.Delete, change: oldObject(`{"apiVersion":"v1","kind":"Secret"}`), refused: "oldObject is of kind"},
		"a delete of nothing":                    {operation: admissionv1.Delete, change: oldObject(""), refused: "read oldObject"},
		"a kind in capitals, which nobody reads": {operation: admissionv1.Create, change: object(`{"APIVERSION":"secret.example.com/v1","KIND":"Password"}`), refused: "object is of kind"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			asked := false
			next := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
				asked = true
				return admission.Allowed("")
			})
			answer := ask(g, next, request(test.operation, test.change))
			g.Expect(answer.Allowed).To(Equal(test.refused == ""))
			g.Expect(asked).To(Equal(test.refused == ""), "the webhook behind is asked about Passwords only")
			if test.refused != "" {
				g.Expect(answer.Result.Message).To(ContainSubstring(test.refused))
				g.Expect(answer.Result.Code).To(BeEquivalentTo(http.StatusBadRequest), "the API server asked wrongly: this is no verdict on the Password")
			}
		})
	}
}

func TestStrictBodies(t *testing.T) {
	request := `"request":{"uid":"1","kind":{"group":"secret.example.com","version":"v1","kind":"Password"},"operation":"CREATE","object":` + aPassword + `}}`
	tests := map[string]struct {
		contentType, body string
		want              int
		allowed           bool
	}{
		"a review":             {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",` + request, want: http.StatusOK, allowed: true},
		"no JSON by its type":  {contentType: "text/plain", body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",` + request, want: http.StatusOK},
		"another version":      {body: `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview",` + request, want: http.StatusBadRequest},
		"another kind":         {body: `{"apiVersion":"v1","kind":"Pod",` + request, want: http.StatusBadRequest},
		"no kind":              {body: "{" + request, want: http.StatusBadRequest},
		"nothing":              {want: http.StatusBadRequest},
		"no JSON":              {body: "<html>", want: http.StatusBadRequest},
		"a review and more":    {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",` + request + "{}", want: http.StatusBadRequest},
		"more than fits in it": {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"` + strings.Repeat(" ", maxBody) + "," + request, want: http.StatusBadRequest},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			allow := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })
			answer := send(allow, cmp.Or(test.contentType, "application/json"), []byte(test.body))
			g.Expect(answer.Code).To(Equal(test.want))
			if test.want != http.StatusOK {
				return
			}
			var answered admissionv1.AdmissionReview
			g.Expect(json.Unmarshal(answer.Body.Bytes(), &answered)).To(Succeed())
			g.Expect(answered.Response.Allowed).To(Equal(test.allowed))
		})
	}
}

func TestStrictSurvivesPanics(t *testing.T) {
	g := NewWithT(t)
	broken := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { panic(errors.New("a mistake")) })
	answer := ask(g, broken, request(admissionv1.Create, nil))
	g.Expect(answer.Allowed).To(BeFalse(), "a webhook that failed must not let anything pass")
	g.Expect(answer.Result.Code).To(BeEquivalentTo(http.StatusInternalServerError))
}

func TestStrictLeavesOtherHandlersAlone(t *testing.T) {
	g := NewWithT(t)
	server := Strict(ctrlwebhook.NewServer(ctrlwebhook.Options{}))
	server.Register("/convert", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	answer := httptest.NewRecorder()
	server.WebhookMux().ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/convert", nil))
	g.Expect(answer.Code).To(Equal(http.StatusTeapot))
}

// rawOf is an object in a request, or none.
func rawOf(object string) runtime.RawExtension {
	if object == "" {
		return runtime.RawExtension{}
	}
	return runtime.RawExtension{Raw: []byte(object)}
}

// ask has a strict server serve a handler, and sends it a request.
func ask(g Gomega, next admission.Handler, question admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	review := admissionv1.AdmissionReview{Request: &question}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(review)
	g.Expect(err).NotTo(HaveOccurred())
	var answered admissionv1.AdmissionReview
	g.Expect(json.Unmarshal(send(next, "application/json", body).Body.Bytes(), &answered)).To(Succeed())
	g.Expect(answered.Response).NotTo(BeNil())
	return answered.Response
}

func send(next admission.Handler, contentType string, body []byte) *httptest.ResponseRecorder {
	server := Strict(ctrlwebhook.NewServer(ctrlwebhook.Options{}))
	server.Register("/ask", &admission.Webhook{Handler: next})
	sent := httptest.NewRequest(http.MethodPost, "/ask", bytes.NewReader(body))
	sent.Header.Set("Content-Type", contentType)
	answer := httptest.NewRecorder()
	server.WebhookMux().ServeHTTP(answer, sent)
	return answer
}

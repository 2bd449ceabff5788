// Package webhook holds what the webhook server does for all webhooks.
package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// maxBody is enough for two objects of the greatest size and what comes with them.
const maxBody = 7 << 20

// Strict makes a server's admission webhooks refuse what is no question about a
// Password. controller-runtime reads any kind of body that has a request in it, takes an object
// that names no kind for one of the right kind, and allows operations that it knows no rule for.
func Strict(server ctrlwebhook.Server) ctrlwebhook.Server {
	return strictServer{server}
}

type strictServer struct{ ctrlwebhook.Server }

// Register implements webhook.Server.
func (s strictServer) Register(path string, hook http.Handler) {
	if admissionHook, ok := hook.(*admission.Webhook); ok {
		admissionHook.Handler = strictHandler{admissionHook.Handler}
		hook = strictHook{admissionHook}
	}
	s.Server.Register(path, hook)
}

type strictHook struct{ next http.Handler }

// ServeHTTP implements http.Handler.
func (h strictHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = checkKind("the body", body, admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.next.ServeHTTP(w, r)
}

type strictHandler struct{ next admission.Handler }

// Handle implements admission.Handler.
func (h strictHandler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if err := checkRequest(request.AdmissionRequest); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return h.next.Handle(ctx, request)
}

// checkRequest returns what makes the request none about a Password.
func checkRequest(request admissionv1.AdmissionRequest) error {
	wanted := metav1.GroupVersionKind(secretv1.SchemeGroupVersion.WithKind("Password"))
	operations := []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete}
	switch {
	case request.Kind != wanted:
		return fmt.Errorf("the request is about kind %q, not %q", request.Kind, wanted)
	case request.SubResource != "":
		return fmt.Errorf("the request is about the subresource %q", request.SubResource)
	case !slices.Contains(operations, request.Operation):
		return fmt.Errorf("the operation is %q, not one of %q", request.Operation, operations)
	}
	if request.Operation != admissionv1.Delete {
		if err := checkObject("object", request.Object); err != nil {
			return err
		}
	}
	if request.Operation != admissionv1.Create {
		return checkObject("oldObject", request.OldObject)
	}
	return nil
}

func checkObject(field string, object runtime.RawExtension) error {
	return checkKind(field, object.Raw, secretv1.SchemeGroupVersion.WithKind("Password"))
}

func checkKind(field string, content []byte, wanted schema.GroupVersionKind) error {
	var found metav1.TypeMeta
	// This json tells kind from Kind, as the decoder does that reads the rest.
	if err := json.Unmarshal(content, &found); err != nil {
		return fmt.Errorf("read %s: %w", field, err)
	}
	if found.GroupVersionKind() != wanted {
		return fmt.Errorf("%s is of kind %q, not %q", field, found.GroupVersionKind(), wanted)
	}
	return nil
}

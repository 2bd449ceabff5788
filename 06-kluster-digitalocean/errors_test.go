package main

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

func TestCloudError(t *testing.T) {
	tests := map[string]struct {
		err        error
		wantReason string
		// wantMessage is a part of the error's message.
		wantMessage string
		// wantTransient means that the operator tries again with backoff.
		wantTransient   bool
		wantCredentials bool
	}{
		"the token is wrong":       {err: &cloud.Error{Problem: cloud.Unauthorized, Message: "who?"}, wantReason: klusterv1alpha1.ReasonTokenRejected, wantMessage: "who?", wantCredentials: true},
		"the name is taken":        {err: &cloud.Error{Problem: cloud.NameTaken, Message: "exists"}, wantReason: klusterv1alpha1.ReasonNameTaken, wantMessage: "exists: unless it is this Kluster's"},
		"the spec is refused":      {err: &cloud.Error{Problem: cloud.Refused, Message: "too many"}, wantReason: klusterv1alpha1.ReasonRefused, wantMessage: "too many"},
		"something is not found":   {err: &cloud.Error{Problem: cloud.NotFound, Message: "no such."}, wantReason: klusterv1alpha1.ReasonUnavailable, wantMessage: "no such.", wantTransient: true},
		"the cloud is busy":        {err: &cloud.Error{Problem: cloud.Busy, Message: "wait"}, wantReason: klusterv1alpha1.ReasonUnavailable, wantMessage: rateMessage, wantTransient: true},
		"the request was not sent": {err: &rateLimitedError{left: time.Minute}, wantReason: klusterv1alpha1.ReasonUnavailable, wantMessage: rateMessage, wantTransient: true},
		"the cloud has failed":     {err: &cloud.Error{Problem: cloud.Unavailable, Message: "oops"}, wantReason: klusterv1alpha1.ReasonUnavailable, wantMessage: "oops", wantTransient: true},
		"the connection is lost":   {err: errors.New("EOF of request 17"), wantReason: klusterv1alpha1.ReasonUnavailable, wantMessage: "the cloud does not answer", wantTransient: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			wrapped := fmt.Errorf("get cluster 7: %w", test.err)
			found, isBlocked := errors.AsType[*blockedError](cloudError(wrapped))
			g.Expect(isBlocked).To(BeTrue())
			g.Expect(found.reason).To(Equal(test.wantReason), "see cloudError in errors.go")
			g.Expect(found.message).To(And(ContainSubstring(test.wantMessage), Not(ContainSubstring("request 17")), Not(ContainSubstring("cluster 7"))),
				"the message must say what is wrong, but nothing that differs at each retry, because that would cause a write each time, see cloudError in errors.go")
			g.Expect(found.credentials).To(Equal(test.wantCredentials))
			if !test.wantTransient {
				g.Expect(found.transient).NotTo(HaveOccurred())
				return
			}
			g.Expect(found.transient).To(MatchError(wrapped))
		})
	}
}

func TestErrorsOfTheAPIServer(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "web", field.ErrorList{field.Invalid(field.NewPath("data"), "", "wrong")})
	going := apierrors.NewForbidden(secrets, "web", errors.New("the namespace is being terminated"))
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := map[string]struct {
		err error
		// wantExpected means that the operator retries without logging an error, and wantRefusal that it reports the
		// error in the status. With neither, it retries, and logs the error.
		wantExpected, wantRefusal bool
	}{
		"another client was faster":             {err: apierrors.NewConflict(secrets, "web", errors.New("changed")), wantExpected: true},
		"the cache does not show it yet":        {err: apierrors.NewAlreadyExists(secrets, "web"), wantExpected: true},
		"the cache still shows it":              {err: apierrors.NewNotFound(secrets, "web"), wantExpected: true},
		"the namespace is terminating":          {err: going},
		"a policy forbids it":                   {err: apierrors.NewForbidden(secrets, "web", errors.New("quota")), wantRefusal: true},
		"a field is not valid":                  {err: invalid, wantRefusal: true},
		"a webhook denies it without a code":    {err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest}}, wantRefusal: true},
		"the API server has a problem":          {err: apierrors.NewInternalError(errors.New("etcd"))},
		"the API server can't be reached":       {err: errors.New("connection refused")},
		"the API server asks to try again soon": {err: apierrors.NewTooManyRequests("busy", 1)},
		"a request waits for the cloud's limit": {err: &rateLimitedError{left: time.Minute}, wantExpected: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			wrapped := fmt.Errorf("write Secret shop/web: %w", test.err)
			g.Expect(isExpected(wrapped)).To(Equal(test.wantExpected), "see isExpected in errors.go")
			g.Expect(isRefusal(wrapped)).To(Equal(test.wantRefusal), "see isRefusal in errors.go")
		})
	}
}

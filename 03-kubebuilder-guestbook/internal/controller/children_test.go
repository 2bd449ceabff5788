//workshop:given 3.3a

package controller

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

// storedChild returns the Deployment of storedGuestbook, as apply finds it.
func storedChild() childObject {
	deployment := newDeployment(storedGuestbook())
	deployment.UID = "uid-of-deployment"
	deployment.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(storedGuestbook(), webappv1.SchemeGroupVersion.WithKind("Guestbook")),
	}
	return childObject{kind: "Deployment", object: deployment, taken: webappv1.ReasonDeploymentTaken}
}

func TestFindBlocker(t *testing.T) {
	now := metav1.Now()
	owner := func(change func(*metav1.OwnerReference)) func(childObject) {
		return func(found childObject) {
			references := found.object.GetOwnerReferences()
			change(&references[0])
			found.object.SetOwnerReferences(references)
		}
	}
	unowned := func(found childObject) { found.object.SetOwnerReferences(nil) }
	tests := map[string]struct {
		change     func(childObject)
		wantReason string
	}{
		"the Guestbook's own":                          {change: func(childObject) {}},
		"the Guestbook's own, being deleted":           {change: func(found childObject) { found.object.SetDeletionTimestamp(&now) }, wantReason: webappv1.ReasonProgressing},
		"without an owner":                             {change: unowned, wantReason: webappv1.ReasonDeploymentTaken},
		"without an owner, being deleted":              {change: func(found childObject) { unowned(found); found.object.SetDeletionTimestamp(&now) }, wantReason: webappv1.ReasonDeploymentTaken},
		"owned, but not controlled":                    {change: owner(func(reference *metav1.OwnerReference) { reference.Controller = nil }), wantReason: webappv1.ReasonDeploymentTaken},
		"that of a deleted Guestbook of the same name": {change: owner(func(reference *metav1.OwnerReference) { reference.UID = "uid-of-deleted" }), wantReason: webappv1.ReasonProgressing},
		"that of a deleted Guestbook, with an older API version": {change: owner(func(reference *metav1.OwnerReference) {
			reference.UID, reference.APIVersion = "uid-of-deleted", "webapp.my.domain/v1alpha1"
		}), wantReason: webappv1.ReasonProgressing},
		"another Guestbook's": {change: owner(func(reference *metav1.OwnerReference) {
			reference.UID, reference.Name = "uid-of-other", "other"
		}), wantReason: webappv1.ReasonDeploymentTaken},
		"another Guestbook's, being deleted": {change: func(found childObject) {
			owner(func(reference *metav1.OwnerReference) { reference.UID, reference.Name = "uid-of-other", "other" })(found)
			found.object.SetDeletionTimestamp(&now)
		}, wantReason: webappv1.ReasonDeploymentTaken},
		"that of another kind with the same name": {change: owner(func(reference *metav1.OwnerReference) {
			reference.UID, reference.Kind = "uid-of-other", "Page"
		}), wantReason: webappv1.ReasonDeploymentTaken},
		"that of a Guestbook of another group": {change: owner(func(reference *metav1.OwnerReference) {
			reference.UID, reference.APIVersion = "uid-of-other", "example.org/v1"
		}), wantReason: webappv1.ReasonDeploymentTaken},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := storedChild()
			test.change(found)
			blocker := findBlocker(storedGuestbook(), found)
			if test.wantReason == "" {
				g.Expect(blocker).To(BeNil(), "see findBlocker in children.go")
				return
			}
			g.Expect(blocker).NotTo(BeNil(), "the Deployment must be left alone, see findBlocker in children.go")
			g.Expect(blocker.reason).To(Equal(test.wantReason), blocker.message)
			g.Expect(blocker.message).To(ContainSubstring(`Deployment "web"`), "the message must name the object")
			g.Expect(blocker.condition()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", test.wantReason)))
		})
	}
}

func TestErrorsOfTheAPIServer(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	terminating := apierrors.NewForbidden(deployments, "web", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web",
		field.ErrorList{field.Invalid(field.NewPath("spec", "template"), "", "wrong")})
	tests := map[string]struct {
		err error
		// A refusal is reported in the status, and the request is retried. In a terminating namespace, the controller
		// gives up. After any other error, the request is only retried.
		wantRefused, wantTerminating bool
	}{
		"someone else has changed the Deployment":    {err: apierrors.NewConflict(deployments, "web", errors.New("changed"))},
		"the cache does not show the Deployment yet": {err: apierrors.NewAlreadyExists(deployments, "web")},
		"the cache still shows the Deployment":       {err: apierrors.NewNotFound(deployments, "web")},
		"the namespace is terminating":               {err: terminating, wantTerminating: true},
		"a policy or a quota forbids the Deployment": {err: apierrors.NewForbidden(deployments, "web", errors.New("quota")), wantRefused: true},
		"a field is not valid":                       {err: invalid, wantRefused: true},
		"a webhook denies it without a code":         {err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest}}, wantRefused: true},
		"the Deployment is too large":                {err: apierrors.NewRequestEntityTooLargeError("limit is 3145728"), wantRefused: true},
		"the API server has a problem":               {err: apierrors.NewInternalError(errors.New("etcd"))},
		"the API server asks to try again later":     {err: apierrors.NewTooManyRequests("busy", 1)},
		"the API server can't be reached":            {err: errors.New("connection refused")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			wrapped := fmt.Errorf("patch Deployment shop/web: %w", test.err)
			g.Expect(isNamespaceTerminating(wrapped)).To(Equal(test.wantTerminating), "see isNamespaceTerminating in guestbook_controller.go")
			blocker := refusal(storedChild(), test.err)
			if !test.wantRefused {
				g.Expect(blocker).To(BeNil(), "see refusal in children.go")
				return
			}
			g.Expect(blocker).NotTo(BeNil(), "see refusal in children.go")
			g.Expect(blocker.reason).To(Equal(webappv1.ReasonRefused))
			g.Expect(blocker.message).To(ContainSubstring(test.err.Error()), "users need the API server's message")
		})
	}
}

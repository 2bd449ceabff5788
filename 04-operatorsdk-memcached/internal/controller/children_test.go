package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// storedChild returns the Deployment of storedMemcached, as apply finds it.
func storedChild() childObject {
	deployment := newDeployment(storedMemcached())
	deployment.UID = "uid-of-deployment"
	deployment.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(storedMemcached(), cachev1alpha1.SchemeGroupVersion.WithKind("Memcached")),
	}
	return childObject{kind: "Deployment", object: deployment}
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
		"the Memcached's own":                          {change: func(childObject) {}},
		"the Memcached's own, being deleted":           {change: func(found childObject) { found.object.SetDeletionTimestamp(&now) }, wantReason: cachev1alpha1.ReasonRollingOut},
		"without an owner":                             {change: unowned, wantReason: cachev1alpha1.ReasonNameTaken},
		"without an owner, being deleted":              {change: func(found childObject) { unowned(found); found.object.SetDeletionTimestamp(&now) }, wantReason: cachev1alpha1.ReasonNameTaken},
		"owned, but not controlled":                    {change: owner(func(reference *metav1.OwnerReference) { reference.Controller = nil }), wantReason: cachev1alpha1.ReasonNameTaken},
		"that of a deleted Memcached of the same name": {change: owner(func(reference *metav1.OwnerReference) { reference.UID = "uid-of-deleted" }), wantReason: cachev1alpha1.ReasonRollingOut},
		"that of a deleted Memcached, with an older API version": {change: owner(func(reference *metav1.OwnerReference) {
			reference.UID, reference.APIVersion = "uid-of-deleted", "cache.example.com/v1alpha0"
		}), wantReason: cachev1alpha1.ReasonRollingOut},
		"another Memcached's": {change: owner(func(reference *metav1.OwnerReference) {
			reference.UID, reference.Name = "uid-of-other", "other"
		}), wantReason: cachev1alpha1.ReasonNameTaken},
		"that of another kind with the same name": {change: owner(func(reference *metav1.OwnerReference) {
			reference.UID, reference.Kind = "uid-of-other", "Cache"
		}), wantReason: cachev1alpha1.ReasonNameTaken},
		"that of a Memcached of another group": {change: owner(func(reference *metav1.OwnerReference) {
			reference.UID, reference.APIVersion = "uid-of-other", "example.org/v1"
		}), wantReason: cachev1alpha1.ReasonNameTaken},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := storedChild()
			test.change(found)
			blocker := findBlocker(storedMemcached(), found)
			if test.wantReason == "" {
				g.Expect(blocker).To(BeNil(), "see findBlocker in children.go")
				return
			}
			g.Expect(blocker).NotTo(BeNil(), "the Deployment must be left alone, see findBlocker in children.go")
			g.Expect(blocker.reason).To(Equal(test.wantReason), blocker.message)
			g.Expect(blocker.message).To(ContainSubstring(`Deployment "sessions"`), "the message must name the object")
		})
	}
}

func TestOwnDeployment(t *testing.T) {
	g := NewWithT(t)
	deployment := storedChild().object.(*appsv1.Deployment)
	g.Expect(ownDeployment(storedMemcached(), deployment)).To(BeIdenticalTo(deployment), "the Memcached's own Deployment must be returned, see ownDeployment in children.go")
	g.Expect(ownDeployment(storedMemcached(), newDeployment(storedMemcached()))).To(BeNil(), "a Deployment that was not found, or never created, must not be returned")
	unsaved := deployment.DeepCopy()
	unsaved.UID = ""
	g.Expect(ownDeployment(storedMemcached(), unsaved)).To(BeNil(), "a Deployment whose creation was refused has an owner, but does not exist, so it must not be returned")
	deployment.OwnerReferences[0].UID = "uid-of-deleted"
	g.Expect(ownDeployment(storedMemcached(), deployment)).To(BeNil(), "a deleted Memcached's Deployment must not be returned")
}

func TestCreate(t *testing.T) {
	g := NewWithT(t)
	memcached := storedMemcached()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: memcached.Namespace, Name: memcached.Name}}
	reconciler := testReconciler(t, interceptor.Funcs{})
	blocker, err := reconciler.create(t.Context(), memcached, childObject{"Deployment", deployment, func() { setDeployment(deployment, memcached, DefaultImage) }})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(blocker).To(BeNil())
	stored := &appsv1.Deployment{}
	g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(memcached), stored)).To(Succeed(), "the Deployment must be created, see create in children.go")
	g.Expect(stored.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)), "the fields must be set before the Deployment is created, see create in children.go")
	g.Expect(stored.OwnerReferences).To(ConsistOf(And(
		HaveField("UID", memcached.UID), HaveField("Controller", HaveValue(BeTrue())), HaveField("BlockOwnerDeletion", HaveValue(BeFalse())),
	)), "see create in children.go")
}

// A child that is blocked or fails must not stop the others.
func TestApplyChildren(t *testing.T) {
	conflicting := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sessions"}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "sessions", errors.New("quota"))
	outage := apierrors.NewInternalError(errors.New("etcd"))
	tests := map[string]struct {
		faults  interceptor.Funcs
		objects []client.Object
		// wantDeployment is true if the Deployment must be returned.
		wantDeployment bool
		// wantReason is the blocker's reason, or "" if there must be no blocker.
		wantReason string
		wantErr    error
	}{
		"nothing is there yet":           {wantDeployment: true},
		"the Deployment exists":          {objects: []client.Object{ownedDeployment()}, wantDeployment: true},
		"the Deployment's name is taken": {objects: []client.Object{conflicting}, wantReason: cachev1alpha1.ReasonNameTaken},
		"the Deployment is refused":      {faults: refusingDeployments(forbidden), wantReason: cachev1alpha1.ReasonRefused, wantErr: forbidden},
		"the Deployment fails":           {faults: refusingDeployments(outage), wantErr: outage},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			memcached := storedMemcached()
			reconciler := testReconciler(t, test.faults, test.objects...)
			deployment, blocker, err := reconciler.applyChildren(t.Context(), memcached)
			if test.wantErr == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(test.wantErr), "see applyChildren in children.go")
			}
			g.Expect(deployment != nil).To(Equal(test.wantDeployment), "applyChildren must return the Memcached's own Deployment if there is one, see ownDeployment in children.go")
			reason := ""
			if blocker != nil {
				reason = blocker.reason
			}
			g.Expect(reason).To(Equal(test.wantReason), "applyChildren in children.go must return why a child is blocked")
			for _, child := range []client.Object{
				&corev1.Service{},               //workshop:step 4.9e
				&policyv1.PodDisruptionBudget{}, //workshop:step 4.10
			} {
				g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(memcached), child)).To(Succeed(), "the %T must be created anyway, see applyChildren in children.go", child)
				g.Expect(child.GetOwnerReferences()).To(ConsistOf(And(
					HaveField("UID", memcached.UID), HaveField("Controller", HaveValue(BeTrue())), HaveField("BlockOwnerDeletion", HaveValue(BeFalse())),
				)), "see create in children.go")
			}
		})
	}
}

//workshop:step 4.9e
func TestApplyChildrenReturnsTheFirstBlocker(t *testing.T) {
	g := NewWithT(t)
	memcached := storedMemcached()
	taken := metav1.ObjectMeta{Namespace: memcached.Namespace, Name: memcached.Name}
	reconciler := testReconciler(t, interceptor.Funcs{}, &appsv1.Deployment{ObjectMeta: taken}, &corev1.Service{ObjectMeta: taken})
	_, blocker, err := reconciler.applyChildren(t.Context(), memcached)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(blocker).NotTo(BeNil(), "see applyChildren in children.go")
	g.Expect(blocker.message).To(HavePrefix("Deployment "), "applyChildren in children.go must return the first blocker")
}

//workshop:step 4.9e
func TestApplyChildrenReturnsAllErrors(t *testing.T) {
	g := NewWithT(t)
	outage := apierrors.NewInternalError(errors.New("etcd"))
	reconciler := testReconciler(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return outage
	}})
	_, _, err := reconciler.applyChildren(t.Context(), storedMemcached())
	for _, kind := range []string{"Deployment", "Service"} {
		g.Expect(err).To(MatchError(ContainSubstring(kind)), "applyChildren in children.go must return the errors of all children")
	}
}

func TestErrorsOfTheAPIServer(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	terminating := apierrors.NewForbidden(deployments, "sessions", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "sessions",
		field.ErrorList{field.Invalid(field.NewPath("spec", "template"), "", "wrong")})
	tests := map[string]struct {
		err error
		// wantRefused means that the status reports the error, and that the queue retries the request. wantTerminating
		// means that the operator ignores the error. With neither, the queue only retries the request.
		wantRefused, wantTerminating bool
	}{
		"someone else has changed it":            {err: apierrors.NewConflict(deployments, "sessions", errors.New("changed"))},
		"the cache does not show it yet":         {err: apierrors.NewAlreadyExists(deployments, "sessions")},
		"the cache still shows it":               {err: apierrors.NewNotFound(deployments, "sessions")},
		"the namespace is terminating":           {err: terminating, wantTerminating: true},
		"a policy or a quota forbids it":         {err: apierrors.NewForbidden(deployments, "sessions", errors.New("quota")), wantRefused: true},
		"a field is not valid":                   {err: invalid, wantRefused: true},
		"a webhook denies it without a code":     {err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest}}, wantRefused: true},
		"it is too large":                        {err: apierrors.NewRequestEntityTooLargeError("limit is 3145728"), wantRefused: true},
		"the API server has a problem":           {err: apierrors.NewInternalError(errors.New("etcd"))},
		"the API server asks to try again later": {err: apierrors.NewTooManyRequests("busy", 1)},
		"the API server can't be reached":        {err: errors.New("connection refused")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			wrapped := fmt.Errorf("patch Deployment shop/sessions: %w", test.err)
			g.Expect(isNamespaceTerminating(wrapped)).To(Equal(test.wantTerminating), "see isNamespaceTerminating in memcached_controller.go")
			blocker := refusal("Deployment", test.err)
			if !test.wantRefused {
				g.Expect(blocker).To(BeNil(), "see refusal in children.go")
				return
			}
			g.Expect(blocker.reason).To(Equal(cachev1alpha1.ReasonRefused))
			g.Expect(blocker.message).To(ContainSubstring(test.err.Error()), "users need the API server's message")
		})
	}
}

func TestDefaultImage(t *testing.T) {
	NewWithT(t).Expect(DefaultImage).To(MatchRegexp(`:\d+\.\d+\.\d+`), "DefaultImage must name a version, so that all pods run the same one")
}

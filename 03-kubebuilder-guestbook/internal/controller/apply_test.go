//workshop:given 3.3a

package controller

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

func TestSettingsDigest(t *testing.T) {
	outage := apierrors.NewInternalError(errors.New("etcd"))
	elsewhere := newSettings()
	elsewhere.Namespace = "bank"
	tests := map[string]struct {
		faults  interceptor.Funcs
		objects []client.Object
		want    string
		// wantBlocked is true if the status must report that the ConfigMap does not exist.
		wantBlocked bool
		wantErr     error
	}{
		"the ConfigMap exists":                                 {objects: []client.Object{newSettings()}, want: digestOf(storedSettings())},
		"the ConfigMap does not exist":                         {wantBlocked: true},
		"a ConfigMap of that name exists in another namespace": {objects: []client.Object{elsewhere}, wantBlocked: true},
		"the API server can't say whether the ConfigMap exists": {faults: interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return outage
			},
		}, wantErr: outage},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found, blocker, err := testReconciler(t, test.faults, test.objects...).settingsDigest(t.Context(), storedGuestbook())
			g.Expect(found).To(Equal(test.want), "see settingsDigest in children.go")
			if test.wantErr == nil {
				g.Expect(err).NotTo(HaveOccurred(), "a missing ConfigMap is not an error: its creation will cause a watch event, see settingsDigest in children.go")
			} else {
				g.Expect(err).To(MatchError(test.wantErr), "see settingsDigest in children.go")
			}
			if !test.wantBlocked {
				g.Expect(blocker).To(BeNil(), "see settingsDigest in children.go")
				return
			}
			g.Expect(blocker).NotTo(BeNil(), "see settingsDigest in children.go")
			g.Expect(blocker.reason).To(Equal(webappv1.ReasonConfigMapNotFound))
			g.Expect(blocker.message).To(ContainSubstring(`ConfigMap "page-settings"`), "the message must name the ConfigMap")
		})
	}
}

func TestApplyCreatesAMissingChild(t *testing.T) {
	g := NewWithT(t)
	reconciler := testReconciler(t, interceptor.Funcs{}, newGuestbook())
	ctx, logged := recordLog(t)
	blocker, err := reconciler.apply(ctx, storedGuestbook(), missingChild())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(blocker).To(BeNil())
	created := &appsv1.Deployment{}
	g.Expect(reconciler.Get(t.Context(), requestFor(newGuestbook()).NamespacedName, created)).To(Succeed(), "see apply and create in children.go")
	g.Expect(metav1.IsControlledBy(created, storedGuestbook())).To(BeTrue(), "the Guestbook must be the controller among the Deployment's owners, see create in children.go")
	g.Expect(created.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)), "the child's fields must be set before it is created, see create in children.go")
	g.Expect(logged.String()).To(ContainSubstring("Created"), "create must log Created to the logger in ctx, see create in children.go")

	written, recording := recordWrites()
	_, err = testReconciler(t, recording, newGuestbook(), created).apply(t.Context(), storedGuestbook(), missingChild())
	g.Expect(err).NotTo(HaveOccurred(), "see apply in children.go")
	g.Expect(*written).NotTo(ContainElement(HavePrefix("create")), "the Deployment exists already, so it must not be created, see apply in children.go")
}

func TestApplyReturnsErrors(t *testing.T) {
	outage := apierrors.NewInternalError(errors.New("etcd"))
	tests := map[string]interceptor.Funcs{
		"the child can't be read": {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return outage
		}},
		"the child can't be created": failCreate(outage),
	}
	for name, faults := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, logged := recordLog(t)
			_, err := testReconciler(t, faults).apply(ctx, storedGuestbook(), missingChild())
			g.Expect(err).To(MatchError(outage), "the queue must retry, see apply and create in children.go")
			g.Expect(err).To(MatchError(ContainSubstring("Deployment shop/web")), "the error must name the object")
			g.Expect(logged.String()).NotTo(ContainSubstring("Created"), "nothing was created, so Created must not be logged, see create in children.go")
		})
	}
}

// missingChild returns the Deployment of storedGuestbook before the controller has created it.
func missingChild() childObject {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	return childObject{
		kind: "Deployment", object: deployment, taken: webappv1.ReasonDeploymentTaken,
		set: func() { setDeployment(deployment, storedGuestbook(), "present") },
	}
}

func TestReconcileCreatesTheDeployment(t *testing.T) {
	g := NewWithT(t)
	reconciler := testReconciler(t, interceptor.Funcs{}, newGuestbook(), newSettings())
	_, err := reconciler.Reconcile(t.Context(), requestFor(newGuestbook()))
	g.Expect(err).NotTo(HaveOccurred())
	created := &appsv1.Deployment{}
	g.Expect(reconciler.Get(t.Context(), requestFor(newGuestbook()).NamespacedName, created)).To(Succeed(), "see reconcile in guestbook_controller.go and applyChildren in children.go")
	g.Expect(created.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
	g.Expect(created.Spec.Template.Annotations).To(HaveKeyWithValue(revisionAnnotation, newRevision(storedGuestbook(), digestOf(storedSettings()))), "the revision must depend on the settings, see applyChildren in children.go")
}

func TestReconcileCreatesNoDeploymentWithoutSettings(t *testing.T) {
	g := NewWithT(t)
	written, recording := recordWrites()
	_, err := testReconciler(t, recording, newGuestbook()).Reconcile(t.Context(), requestFor(newGuestbook()))
	g.Expect(err).NotTo(HaveOccurred(), "the creation of the settings will cause a watch event")
	g.Expect(*written).NotTo(ContainElement(ContainSubstring("Deployment")), "the Deployment's pods would never start, see applyChildren in children.go")
}

// The cache may not show yet that the name is in use.
func TestCreateDoesNotAdopt(t *testing.T) {
	g := NewWithT(t)
	conflicting := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	reconciler := testReconciler(t, interceptor.Funcs{}, newGuestbook(), conflicting)
	child := storedChild()
	child.object.SetOwnerReferences(nil)
	child.set = func() {}
	blocker, err := reconciler.create(t.Context(), storedGuestbook(), child)
	g.Expect(apierrors.IsAlreadyExists(err)).To(BeTrue(), "see create in children.go, found: %v", err)
	g.Expect(blocker).To(BeNil(), "the retry will find the object and check its owner")
}

func TestCreateReportsARefusal(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	tests := map[string]struct {
		answer      error
		wantBlocked bool
	}{
		"the API server refuses the Deployment": {answer: apierrors.NewForbidden(deployments, "web", errors.New("quota")), wantBlocked: true},
		"the API server has a problem":          {answer: apierrors.NewInternalError(errors.New("etcd"))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			child := storedChild()
			child.object.SetOwnerReferences(nil)
			child.set = func() {}
			blocker, err := testReconciler(t, failCreate(test.answer)).create(t.Context(), storedGuestbook(), child)
			g.Expect(err).To(MatchError(test.answer), "the queue must retry, see create in children.go")
			g.Expect(blocker != nil).To(Equal(test.wantBlocked), "see refusal in children.go: create must return its result together with the error")
		})
	}
}

func TestReconcileCreatesTheService(t *testing.T) {
	g := NewWithT(t)
	reconciler := testReconciler(t, interceptor.Funcs{}, newGuestbook(), newSettings())
	_, err := reconciler.Reconcile(t.Context(), requestFor(newGuestbook()))
	g.Expect(err).NotTo(HaveOccurred())
	created := &corev1.Service{}
	g.Expect(reconciler.Get(t.Context(), requestFor(newGuestbook()).NamespacedName, created)).To(Succeed(), "see applyChildren in children.go")
	g.Expect(metav1.IsControlledBy(created, storedGuestbook())).To(BeTrue())
	g.Expect(created.Spec.Selector).To(Equal(selectorLabels(storedGuestbook())))
}

func TestServiceDoesNotDependOnTheDeployment(t *testing.T) {
	outage := apierrors.NewInternalError(errors.New("etcd"))
	conflicting := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	tests := map[string]struct {
		faults  interceptor.Funcs
		objects []client.Object
		wantErr error
	}{
		"there are no settings":          {},
		"the Deployment's name is taken": {objects: []client.Object{newSettings(), conflicting}},
		"the Deployment can't be created": {objects: []client.Object{newSettings()}, wantErr: outage, faults: interceptor.Funcs{
			Create: func(ctx context.Context, writer client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if _, isDeployment := object.(*appsv1.Deployment); isDeployment {
					return outage
				}
				return writer.Create(ctx, object, options...)
			},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reconciler := testReconciler(t, test.faults, append(test.objects, newGuestbook())...)
			_, err := reconciler.Reconcile(t.Context(), requestFor(newGuestbook()))
			if test.wantErr == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(test.wantErr), "the queue must retry, see applyChildren in children.go")
			}
			g.Expect(reconciler.Get(t.Context(), requestFor(newGuestbook()).NamespacedName, &corev1.Service{})).To(Succeed(), "the Service must not depend on the Deployment, see applyChildren in children.go")
		})
	}
}

func TestPatch(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	forbidden := apierrors.NewForbidden(deployments, "web", errors.New("policy"))
	conflict := apierrors.NewConflict(deployments, "web", errors.New("changed"))
	scaled := func(deployment *appsv1.Deployment) { deployment.Spec.Replicas = new(int32(7)) }
	tests := map[string]struct {
		change func(*appsv1.Deployment)
		answer error
		// want is the expected patch, or "" if there must be none.
		want        string
		wantRefused bool
	}{
		"nothing differs": {change: func(*appsv1.Deployment) {}},
		"others have added something": {change: func(deployment *appsv1.Deployment) {
			deployment.Annotations = map[string]string{"note": "of a user"}
		}},
		"the Deployment was scaled by hand": {change: scaled, want: `{"metadata":{"resourceVersion":"40"},"spec":{"replicas":2}}`},
		"a label of ours was removed, and another one added": {change: func(deployment *appsv1.Deployment) {
			deployment.Labels = map[string]string{"app.kubernetes.io/name": "guestbook", instanceLabel: "web", "team": "shop"}
		}, want: `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"guestbook-controller"},"resourceVersion":"40"}}`},
		"the API server refuses the patch":                        {change: scaled, answer: forbidden, want: `{"metadata":{"resourceVersion":"40"},"spec":{"replicas":2}}`, wantRefused: true},
		"someone else has changed the Deployment in the meantime": {change: scaled, answer: conflict, want: `{"metadata":{"resourceVersion":"40"},"spec":{"replicas":2}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			sent := ""
			reconciler := testReconciler(t, interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
					data, err := patch.Data(object)
					g.Expect(err).NotTo(HaveOccurred())
					sent = string(data)
					return test.answer
				},
			})
			deployment := storedChild().object.(*appsv1.Deployment)
			deployment.ResourceVersion = "40"
			test.change(deployment)
			ctx, logged := recordLog(t)
			blocker, err := reconciler.patch(ctx, childObject{
				kind: "Deployment", object: deployment, set: func() { setDeployment(deployment, storedGuestbook(), "present") },
			})
			if test.want == "" {
				g.Expect(sent).To(BeEmpty(), "patch must send nothing if no field of ours differs, see patch in children.go")
			} else {
				g.Expect(sent).NotTo(BeEmpty(), "see patch in children.go")
				g.Expect(sent).To(MatchJSON(test.want), "the patch must contain the fields that differ, the resource version, and nothing else: see patch in children.go")
			}
			if test.want == "" || test.answer != nil {
				g.Expect(logged.String()).NotTo(ContainSubstring("Patched"), "nothing was patched, so Patched must not be logged, see patch in children.go")
			} else {
				g.Expect(logged.String()).To(ContainSubstring("Patched"), "patch must log Patched to the logger in ctx, see patch in children.go")
			}
			g.Expect(blocker != nil).To(Equal(test.wantRefused), "patch must return the blocker from refusal if the API server refuses the patch")
			if test.answer == nil {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(test.answer), "the queue must retry")
		})
	}
}

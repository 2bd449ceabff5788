package main

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
)

func TestSyncHasNothingToDo(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		prepare func(*controller, *examplev1alpha1.Foo)
	}{
		"the Foo does not exist": {
			prepare: func(c *controller, foo *examplev1alpha1.Foo) { _ = c.fooIndex.Delete(foo) },
		},
		"the Foo is being deleted": {
			prepare: func(_ *controller, foo *examplev1alpha1.Foo) { foo.DeletionTimestamp = &now },
		},
		"the cache does not show our last write yet": {
			prepare: func(c *controller, foo *examplev1alpha1.Foo) {
				newer := foo.DeepCopy()
				newer.ResourceVersion = "31"
				c.lastStatus.note(foo, newer)
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSyncer(g, t, nil)
			foo := storedFoo()
			g.Expect(s.fooIndex.Update(foo)).To(Succeed())
			test.prepare(s.controller, foo)
			g.Expect(s.sync(t.Context(), cache.MetaObjectToName(foo))).To(Succeed())
			g.Expect(verbs(s.kube)).To(BeEmpty(), "sync must not create the Deployment: %s, see sync in sync.go", name)
			g.Expect(s.foos.Actions()).To(BeEmpty(), "sync must not write the status: %s, see sync in sync.go", name)
		})
	}
}

func TestRemoveRenamedWaitsForTheRollout(t *testing.T) {
	tests := map[string]appsv1.DeploymentStatus{
		"the new Deployment has no status yet":                {},
		"the new Deployment's pods don't run":                 {ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3},
		"one pod is not available yet":                        {ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 2},
		"the new Deployment's status describes an older spec": {ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3},
	}
	for name, status := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newHandlers(t) // it has no clients: any request to the API server would panic
			c.deploymentIndex = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byOwner: indexByOwner})
			former, present := storedDeployment(), storedDeployment()
			former.Name = "former"
			present.Status = status
			g.Expect(c.deploymentIndex.Add(former)).To(Succeed())
			g.Expect(c.removeRenamed(t.Context(), storedFoo(), present)).To(Succeed())
		})
	}
}

func TestRemoveDeployment(t *testing.T) {
	changed := func(change func(*examplev1alpha1.Foo)) *examplev1alpha1.Foo {
		foo := storedFoo()
		change(foo)
		return foo
	}
	forbidden := apierrors.NewForbidden(appsv1.Resource("deployments"), "former", errors.New("a policy keeps it"))
	conflict := apierrors.NewConflict(appsv1.Resource("deployments"), "former", errors.New("changed"))
	tests := map[string]struct {
		// cached is the Foo in the cache; the API server has storedFoo().
		cached *examplev1alpha1.Foo
		// gone is true if the API server no longer has the Deployment.
		gone bool
		// answer, unless it is nil, is the error with which the API server answers the deletion.
		answer  error
		wantErr error
		// wantRefusal is true if the error must be a blocker.
		wantRefusal bool
	}{
		"the cache is current":                {cached: storedFoo()},
		"the Deployment is gone already":      {cached: storedFoo(), gone: true},
		"the API server refuses the deletion": {cached: storedFoo(), answer: forbidden, wantErr: forbidden, wantRefusal: true},
		"the Deployment has changed":          {cached: storedFoo(), answer: conflict, wantErr: conflict},
		"the Foo has changed":                 {cached: changed(func(foo *examplev1alpha1.Foo) { foo.Generation = 2 }), wantErr: errStaleCache},
		"the Foo was deleted and recreated":   {cached: changed(func(foo *examplev1alpha1.Foo) { foo.UID = "uid-of-deleted" }), wantErr: errStaleCache},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			former := storedDeployment()
			former.Name, former.ResourceVersion = "former", "20"
			s := newSyncer(g, t, []*appsv1.Deployment{former})
			if test.gone {
				g.Expect(s.kube.Tracker().Delete(appsv1.SchemeGroupVersion.WithResource("deployments"), "shop", "former")).To(Succeed())
			}
			if test.answer != nil {
				s.kube.PrependReactor("delete", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.answer })
			}
			err := s.removeDeployment(t.Context(), test.cached, former)
			refusal, refused := errors.AsType[*blocker](err)
			g.Expect(refused).To(Equal(test.wantRefusal), "a refusal must become a blocker, and no other error may, see removeDeployment in sync.go; found %v", err)
			if refused {
				g.Expect(refusal.reason).To(Equal(examplev1alpha1.ReasonDeploymentRefused))
				g.Expect(refusal.message).To(And(ContainSubstring(`"former"`), ContainSubstring("a policy keeps it")), "the message must name the Deployment, and say why it stays")
				err = refusal.cause // no event will follow, so the blocker needs a cause, which makes the controller retry
			}
			if test.wantErr == nil {
				g.Expect(err).NotTo(HaveOccurred(), "see removeDeployment in sync.go")
			} else {
				g.Expect(err).To(MatchError(test.wantErr), "see removeDeployment in sync.go")
			}
			if errors.Is(test.wantErr, errStaleCache) {
				g.Expect(s.kube.Actions()).To(BeEmpty(), "a stale cache must not lead to a deletion")
				return
			}
			g.Expect(s.kube.Actions()).To(HaveLen(1), "the deletion must be the only request for a Deployment")
			deletion, is := s.kube.Actions()[0].(clienttesting.DeleteAction)
			g.Expect(is).To(BeTrue())
			g.Expect(deletion.GetName()).To(Equal("former"))
			preconditions := deletion.GetDeleteOptions().Preconditions
			g.Expect(preconditions).NotTo(BeNil(), "the deletion must not hit a Deployment that has changed since")
			g.Expect(preconditions.UID).To(HaveValue(Equal(former.UID)))
			g.Expect(preconditions.ResourceVersion).To(HaveValue(Equal("20")))
			// For Deployments, background propagation is the default.
			if policy := deletion.GetDeleteOptions().PropagationPolicy; policy != nil {
				g.Expect(*policy).To(Equal(metav1.DeletePropagationBackground),
					"the deletion must leave the pods to the garbage collector: Orphan keeps them, and Foreground waits for them")
			}
		})
	}
}

func TestErrorsOfTheAPIServer(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	invalid := func(path string) error {
		return apierrors.NewInvalid(kind, "web", field.ErrorList{field.Invalid(field.NewPath(path), "", "wrong")})
	}
	terminating := apierrors.NewForbidden(deployments, "web", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	// If a webhook denies a request and gives no status, this is the API server's answer, see ToStatusErr in
	// k8s.io/apiserver.
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Message: `admission webhook "policy.example.com" denied the request without explanation`,
	}}
	tests := map[string]struct {
		err error
		// The sync is retried after each of these errors. All but the expected ones are logged as errors, and a refusal is
		// also reported in the status.
		wantExpected, wantRefusal bool
	}{
		"someone else has changed the Deployment":    {err: apierrors.NewConflict(deployments, "web", errors.New("changed")), wantExpected: true},
		"the cache does not show the Deployment yet": {err: apierrors.NewAlreadyExists(deployments, "web"), wantExpected: true},
		"the cache still shows the Deployment":       {err: apierrors.NewNotFound(deployments, "web"), wantExpected: true},
		"the cached Foo is stale":                    {err: errStaleCache, wantExpected: true},
		"the namespace is terminating":               {err: terminating, wantExpected: true},
		"the patch is for another object":            {err: invalid("metadata.uid"), wantExpected: true},
		"a quota forbids the Deployment":             {err: apierrors.NewForbidden(deployments, "web", errors.New("quota")), wantRefusal: true},
		"a field is not valid":                       {err: invalid("spec.template"), wantRefusal: true},
		"a webhook denies it without a code":         {err: denied, wantRefusal: true},
		"the API server has a problem":               {err: apierrors.NewInternalError(errors.New("etcd"))},
		"the API server can't be reached":            {err: errors.New("connection refused")},
		"the API server asks to try again soon":      {err: apierrors.NewTooManyRequests("busy", 1)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			wrapped := fmt.Errorf("patch Deployment shop/web: %w", test.err)
			g.Expect(isExpected(wrapped)).To(Equal(test.wantExpected), "see isExpected in sync.go")
			g.Expect(isRefusal(wrapped)).To(Equal(test.wantRefusal), "see isRefusal in sync.go")
		})
	}
}

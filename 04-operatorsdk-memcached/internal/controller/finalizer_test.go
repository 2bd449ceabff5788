package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// otherFinalizer belongs to another controller. It also keeps the in-memory client from deleting the Memcached.
const otherFinalizer = "test.example.com/other"

// deletedMemcached returns a Memcached that is being deleted, with the given finalizers and otherFinalizer.
func deletedMemcached(finalizers ...string) *cachev1alpha1.Memcached {
	memcached := newMemcached()
	memcached.DeletionTimestamp = &metav1.Time{Time: noon}
	memcached.Finalizers = slices.Concat(finalizers, []string{otherFinalizer})
	return memcached
}

// ownedDeployment returns the Deployment that storedMemcached controls.
func ownedDeployment() *appsv1.Deployment { return storedChild().object.(*appsv1.Deployment) }

// terminating marks an object as being deleted, and gives it a finalizer that keeps it.
func terminating[T client.Object](object T) T {
	object.SetDeletionTimestamp(&metav1.Time{Time: noon})
	object.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
	return object
}

func TestFinalize(t *testing.T) {
	pod := storedPod("sessions-1")
	pod.ResourceVersion = ""
	unowned := ownedDeployment()
	unowned.OwnerReferences = nil
	tests := map[string]struct {
		objects []client.Object
		// orphan is true if the Memcached is deleted with kubectl delete --cascade=orphan.
		orphan bool
		// wantFinalizer is true if the Memcached must wait, and wantDeployment if a Deployment must remain.
		wantFinalizer, wantDeployment bool
		wantEvents                    []string
	}{
		"its Deployment exists": {
			objects:       []client.Object{ownedDeployment(), &pod},
			wantFinalizer: true, wantEvents: []string{`Normal Stopping Deleting Deployment "sessions" and its pods`},
		},
		"its Deployment is terminating": {
			objects:       []client.Object{terminating(ownedDeployment())},
			wantFinalizer: true, wantDeployment: true,
		},
		"its Deployment is gone, but a pod is left": {
			objects: []client.Object{&pod}, wantFinalizer: true,
		},
		"nothing is left": {
			wantEvents: []string{"Normal Stopped All pods are gone"},
		},
		"the Deployment and its pods are someone else's": {
			objects:        []client.Object{unowned, &pod},
			wantDeployment: true, wantEvents: []string{"Normal Stopped All pods are gone"},
		},
		"the children must be orphaned": {
			orphan: true, objects: []client.Object{ownedDeployment(), &pod},
			wantDeployment: true, wantEvents: []string{"Normal Stopped The children stay, without an owner"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			memcached := deletedMemcached(cachev1alpha1.Finalizer)
			if test.orphan {
				memcached.Finalizers = append(memcached.Finalizers, metav1.FinalizerOrphanDependents)
			}
			key := client.ObjectKeyFromObject(memcached)
			reconciler := testReconciler(t, interceptor.Funcs{}, append(test.objects, memcached)...)
			g.Expect(reconciler.Get(t.Context(), key, memcached)).To(Succeed())
			g.Expect(reconciler.finalize(t.Context(), memcached)).To(Succeed())

			g.Expect(reconciler.Get(t.Context(), key, memcached)).To(Succeed())
			if test.wantFinalizer {
				g.Expect(memcached.Finalizers).To(ContainElement(cachev1alpha1.Finalizer), "a pod may be left, see finalize in finalizer.go")
			} else {
				g.Expect(memcached.Finalizers).NotTo(ContainElement(cachev1alpha1.Finalizer), "the finalizer must be removed, see finalize and endPods in finalizer.go")
			}
			g.Expect(memcached.Finalizers).To(ContainElement(otherFinalizer), "another controller's finalizer must stay")
			err := reconciler.Get(t.Context(), key, &appsv1.Deployment{})
			g.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
			g.Expect(err == nil).To(Equal(test.wantDeployment), "see finalize, endPods and deleteDeployment in finalizer.go")
			expectRecorded(g, reconciler, test.wantEvents, "the event must say what has happened, see finalize, deleteDeployment and removeFinalizer in finalizer.go")
		})
	}
}

// expectRecorded checks that the reconciler has emitted the wanted Events and no others; hint says what is wrong if it
// hasn't, and in which functions to look. Call expectRecorded once, because it closes the recorder.
func expectRecorded(g Gomega, reconciler *MemcachedReconciler, want []string, hint string) {
	recorder := reconciler.Recorder.(*events.FakeRecorder)
	close(recorder.Events)
	var recorded []string
	for event := range recorder.Events {
		recorded = append(recorded, event)
	}
	g.Expect(recorded).To(Equal(want), hint)
}

// The cache may not show the Deployment yet. A deletion that overlooks it might not wait for its pods.
func TestFinalizeReadsFromTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	memcached := deletedMemcached(cachev1alpha1.Finalizer)
	key := client.ObjectKeyFromObject(memcached)
	stale := interceptor.Funcs{Get: func(ctx context.Context, stored client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		if _, isDeployment := object.(*appsv1.Deployment); isDeployment {
			return apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, key.Name)
		}
		return stored.Get(ctx, key, object, options...)
	}}
	reconciler := testReconciler(t, stale, memcached, ownedDeployment())
	g.Expect(reconciler.Get(t.Context(), key, memcached)).To(Succeed())
	g.Expect(reconciler.finalize(t.Context(), memcached)).To(Succeed())
	g.Expect(reconciler.Get(t.Context(), key, memcached)).To(Succeed())
	g.Expect(memcached.Finalizers).To(ContainElement(cachev1alpha1.Finalizer), "read the Deployment from the API server, see endPods in finalizer.go")
}

// If a request fails, the operator can't know whether a pod is left.
func TestFinalizeKeepsTheFinalizerIfARequestFails(t *testing.T) {
	failed := errors.New("failed")
	tests := map[string]struct {
		objects []client.Object
		// faults replaces methods of the reconciler's client, and uncached those of its APIReader.
		faults, uncached interceptor.Funcs
	}{
		"getting the Deployment": {
			uncached: interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return failed
			}},
		},
		"deleting the Deployment": {
			objects: []client.Object{ownedDeployment()},
			faults: interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
				return failed
			}},
		},
		"listing the pods": {
			faults: interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return failed
			}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			memcached := deletedMemcached(cachev1alpha1.Finalizer)
			reconciler := testReconciler(t, test.faults, append(test.objects, memcached)...)
			reconciler.APIReader = interceptor.NewClient(reconciler.APIReader.(client.WithWatch), test.uncached)
			key := client.ObjectKeyFromObject(memcached)
			g.Expect(reconciler.Get(t.Context(), key, memcached)).To(Succeed())
			g.Expect(reconciler.finalize(t.Context(), memcached)).To(MatchError(failed), "the error must be returned, see finalize and endPods in finalizer.go")
			g.Expect(reconciler.Get(t.Context(), key, memcached)).To(Succeed())
			g.Expect(memcached.Finalizers).To(ContainElement(cachev1alpha1.Finalizer), "a pod may be left, see finalize in finalizer.go")
		})
	}
}

// A deletion that the API server refuses is reported; otherwise users would see only that their Memcached doesn't go
// away.
func TestRefusedDeletionIsReported(t *testing.T) {
	g := NewWithT(t)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "sessions", errors.New("a policy keeps it"))
	memcached := deletedMemcached(cachev1alpha1.Finalizer)
	available := metav1.Condition{Type: cachev1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonEnoughPods}
	memcached.Generation, memcached.Status.Replicas, memcached.Status.Conditions = 7, 3, []metav1.Condition{available}
	reconciler := testReconciler(t, failingDeletion(forbidden), memcached, ownedDeployment())
	for range 2 {
		_, err := reconciler.Reconcile(t.Context(), requestFor(memcached))
		g.Expect(err).To(MatchError(forbidden), "the deletion must be retried, see endPods in finalizer.go")
	}
	g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(memcached), memcached)).To(Succeed())
	g.Expect(memcached.Finalizers).To(ContainElement(cachev1alpha1.Finalizer), "the pods are still running, see finalize in finalizer.go")
	g.Expect(memcached.Status.Replicas).To(BeEquivalentTo(3))
	g.Expect(memcached.Status.Conditions).To(ConsistOf(available, And(
		HaveField("Type", cachev1alpha1.ConditionDegraded), HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", BeEquivalentTo(7)),
		HaveField("Reason", cachev1alpha1.ReasonRefused), HaveField("Message", ContainSubstring("a policy keeps it")),
	)), "the condition Degraded must say why the Memcached can't be deleted, see reconcile in memcached_controller.go")
	expectRecorded(g, reconciler, []string{"Warning Refused the API server refuses the deletion: " + fmt.Errorf("delete Deployment shop/sessions: %w", forbidden).Error()},
		"a refusal must be announced, and only once, see reconcile in memcached_controller.go")
}

func TestDeleteDeploymentThatIsGone(t *testing.T) {
	g := NewWithT(t)
	gone := apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "sessions")
	reconciler := testReconciler(t, failingDeletion(gone))
	g.Expect(reconciler.deleteDeployment(t.Context(), storedMemcached(), ownedDeployment())).To(Succeed(), "what is gone needs no deletion, see deleteDeployment in finalizer.go")
	expectRecorded(g, reconciler, nil, "nothing was deleted, so there must be no event, see deleteDeployment in finalizer.go")
}

func TestDeleteDeployment(t *testing.T) {
	g := NewWithT(t)
	request := &client.DeleteOptions{}
	requested := interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
		request.ApplyOptions(options)
		return nil
	}}
	deployment := ownedDeployment()
	reconciler := testReconciler(t, requested, deployment)
	recorder := &relatedRecorder{}
	reconciler.Recorder = recorder
	g.Expect(reconciler.deleteDeployment(t.Context(), storedMemcached(), deployment)).To(Succeed())
	g.Expect(request.Preconditions).NotTo(BeNil(), "the name may have passed to another Deployment, see deleteDeployment in finalizer.go")
	g.Expect(request.Preconditions.UID).To(HaveValue(Equal(deployment.UID)), "see deleteDeployment in finalizer.go")
	g.Expect(request.PropagationPolicy).To(HaveValue(Equal(metav1.DeletePropagationForeground)), "see deleteDeployment in finalizer.go")
	g.Expect(recorder.message).To(Equal(`Stopping: Deleting Deployment "sessions" and its pods`), "the Event must announce the deletion, see deleteDeployment in finalizer.go")
	g.Expect(fmt.Sprintf("%T", recorder.related)).To(Equal("*v1.Deployment"), "the Event's related object must be the Deployment, see deleteDeployment in finalizer.go")

	*request, *recorder = client.DeleteOptions{}, relatedRecorder{}
	g.Expect(reconciler.deleteDeployment(t.Context(), storedMemcached(), terminating(deployment))).To(Succeed())
	g.Expect(request.Preconditions).To(BeNil(), "a Deployment that is already being deleted must not be deleted again, see deleteDeployment in finalizer.go")
	g.Expect(recorder.message).To(BeEmpty(), "an event for each reconcile would be too many, see deleteDeployment in finalizer.go")
}

// relatedRecorder keeps the last Event: the related object, and the reason and the message in one string.
type relatedRecorder struct {
	related runtime.Object
	message string
}

func (r *relatedRecorder) Eventf(_, related runtime.Object, _, reason, _, format string, values ...any) {
	r.related, r.message = related, reason+": "+fmt.Sprintf(format, values...)
}

func TestFinalizeWaitsForOtherFinalizers(t *testing.T) {
	g := NewWithT(t)
	memcached := deletedMemcached()
	reconciler := testReconciler(t, interceptor.Funcs{}, memcached, ownedDeployment())
	g.Expect(reconciler.finalize(t.Context(), memcached)).To(Succeed())
	g.Expect(reconciler.Get(t.Context(), client.ObjectKeyFromObject(memcached), &appsv1.Deployment{})).To(Succeed(), "without the operator's finalizer, nothing may be deleted, see finalize in finalizer.go")
	expectRecorded(g, reconciler, nil, "nothing has happened, so there must be no event, see finalize in finalizer.go")
}

func TestAddFinalizer(t *testing.T) {
	g := NewWithT(t)
	stored := newMemcached()
	stored.Finalizers = []string{otherFinalizer}
	reconciler := testReconciler(t, interceptor.Funcs{}, stored)
	memcached, key := &cachev1alpha1.Memcached{}, client.ObjectKeyFromObject(stored)
	g.Expect(reconciler.Get(t.Context(), key, memcached)).To(Succeed())
	stale := memcached.DeepCopy()

	g.Expect(reconciler.addFinalizer(t.Context(), memcached)).To(Succeed())
	g.Expect(reconciler.Get(t.Context(), key, memcached)).To(Succeed())
	g.Expect(memcached.Finalizers).To(ConsistOf(otherFinalizer, cachev1alpha1.Finalizer), "see addFinalizer in finalizer.go")
	version := memcached.ResourceVersion
	g.Expect(reconciler.addFinalizer(t.Context(), memcached)).To(Succeed())
	g.Expect(memcached.ResourceVersion).To(Equal(version), "a Memcached that already has the finalizer must not be written again")
	err := reconciler.addFinalizer(t.Context(), stale)
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "a stale list must not replace the stored one, see patchFinalizers in finalizer.go, found: %v", err)
}

func TestRemoveFinalizer(t *testing.T) {
	g := NewWithT(t)
	memcached := deletedMemcached(cachev1alpha1.Finalizer)
	reconciler, key := testReconciler(t, interceptor.Funcs{}, memcached), client.ObjectKeyFromObject(memcached)
	g.Expect(reconciler.Get(t.Context(), key, memcached)).To(Succeed())
	stale := memcached.DeepCopy()

	g.Expect(reconciler.removeFinalizer(t.Context(), memcached, "It is over")).To(Succeed())
	g.Expect(reconciler.Get(t.Context(), key, memcached)).To(Succeed())
	g.Expect(memcached.Finalizers).To(ConsistOf(otherFinalizer), "our finalizer must go, and another controller's must stay, see removeFinalizer in finalizer.go")
	err := reconciler.removeFinalizer(t.Context(), stale, "It is over")
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "a stale list must not replace the stored one, see patchFinalizers in finalizer.go, found: %v", err)
	expectRecorded(g, reconciler, []string{"Normal Stopped It is over"},
		"there must be an event after each successful patch, and none if the patch fails, see removeFinalizer in finalizer.go")
}

func TestListPodsIncludesTerminatingPods(t *testing.T) {
	pod, other := storedPod("sessions-1"), storedPod("other-1")
	other.Labels = map[string]string{instanceLabel: "other"}
	tests := map[string]struct {
		pod  corev1.Pod
		want int
	}{
		"a pod is running":          {pod: pod, want: 1},
		"a pod is terminating":      {pod: *terminating(pod.DeepCopy()), want: 1},
		"the pod is someone else's": {pod: other, want: 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.pod.ResourceVersion = ""
			pods, err := testReconciler(t, interceptor.Funcs{}, &test.pod).listPods(t.Context(), storedMemcached())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(HaveLen(test.want), "see listPods in memcached_controller.go")
		})
	}
}

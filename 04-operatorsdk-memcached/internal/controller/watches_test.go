package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestVisiblyChanged(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"a resync":                       {change: func(*corev1.Pod) {}},
		"an annotation changes":          {change: func(pod *corev1.Pod) { pod.Annotations["note"], pod.ResourceVersion = "new", "41" }},
		"its address changes":            {change: func(pod *corev1.Pod) { pod.Status.PodIP = "10.0.0.2" }},
		"its container is being created": {change: func(pod *corev1.Pod) { pod.Status = waitingStatus(*pod, "ContainerCreating") }},
		"it is no longer ready":          {change: func(pod *corev1.Pod) { *pod = unready(*pod) }, want: true},
		"it is being deleted":            {change: func(pod *corev1.Pod) { pod.DeletionTimestamp = &now }, want: true},
		"it was evicted":                 {change: func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, want: true},
		"its container crashes again":    {change: func(pod *corev1.Pod) { pod.Status = waitingStatus(*pod, "CrashLoopBackOff") }, want: true},
		"it fits on no node":             {change: func(pod *corev1.Pod) { pod.Status.Conditions[0] = unscheduled(*pod, noon).Status.Conditions[0] }, want: true},
		"its revision changes":           {change: func(pod *corev1.Pod) { pod.Annotations[revisionAnnotation] = "other" }, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before, after := storedPod("sessions-1"), storedPod("sessions-1")
			test.change(&after)
			g.Expect(visiblyChanged.Update(event.UpdateEvent{ObjectOld: &before, ObjectNew: &after})).To(Equal(test.want), "see visiblyChanged in watches.go")
			g.Expect(visiblyChanged.Update(event.UpdateEvent{ObjectOld: &after, ObjectNew: &before})).To(Equal(test.want), "the reverse change must have the same result")
			g.Expect(visiblyChanged.Update(event.UpdateEvent{ObjectOld: cachedPod(g, &before), ObjectNew: cachedPod(g, &after)})).To(Equal(test.want), "the pods that the cache keeps must give the same result")
		})
	}
}

func TestVisiblyChangedComparesFailures(t *testing.T) {
	g := NewWithT(t)
	pull, turn, crash := waiting(storedPod("a"), "ErrImagePull"), waiting(storedPod("a"), "ImagePullBackOff"), waiting(storedPod("a"), "CrashLoopBackOff")
	g.Expect(visiblyChanged.Update(event.UpdateEvent{ObjectOld: &pull, ObjectNew: &turn})).To(BeFalse(), "reasons for the same failure alternate, which must not queue the Memcached")
	g.Expect(visiblyChanged.Update(event.UpdateEvent{ObjectOld: &turn, ObjectNew: &crash})).To(BeTrue(), "another failure must queue the Memcached")
}

// waitingStatus returns the pod's status, but with a container that is waiting, with the given reason. The conditions
// stay.
func waitingStatus(pod corev1.Pod, reason string) corev1.PodStatus {
	status := waiting(pod, reason).Status
	status.Conditions = pod.Status.Conditions
	return status
}

func cachedPod(g Gomega, pod *corev1.Pod) client.Object {
	cached, err := keepEssentials(pod.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
	return cached.(client.Object)
}

func TestPredicatesPassCreationsAndDeletions(t *testing.T) {
	pod := storedPod("sessions-1")
	tests := map[string]struct {
		predicate predicate.Predicate
		object    client.Object
	}{
		"pods":                  {predicate: visiblyChanged, object: &pod},
		"someone else's object": {predicate: uncontrolled, object: newDeployment(storedMemcached())},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(test.predicate.Create(event.CreateEvent{Object: test.object})).To(BeTrue())
			g.Expect(test.predicate.Delete(event.DeleteEvent{Object: test.object})).To(BeTrue())
		})
	}
}

func TestUncontrolled(t *testing.T) {
	g := NewWithT(t)
	owned, another, unowned := storedChild().object, storedChild().object, newService(storedMemcached())
	g.Expect(uncontrolled.Create(event.CreateEvent{Object: owned})).To(BeFalse(), "a Deployment that a Memcached controls is left to Owns")
	g.Expect(uncontrolled.Update(event.UpdateEvent{ObjectOld: owned, ObjectNew: newDeployment(storedMemcached())})).To(BeTrue(), "a Deployment whose owner reference was removed must pass the predicate")
	another.SetName("other")
	g.Expect(uncontrolled.Delete(event.DeleteEvent{Object: another})).To(BeTrue(), "Owns queues the Memcached sessions, but this Deployment may block the Memcached other")
	owned.GetOwnerReferences()[0].APIVersion = "cache.example.com/v1alpha0"
	g.Expect(uncontrolled.Create(event.CreateEvent{Object: owned})).To(BeFalse(), "an owner reference from before a new version of the API still names a Memcached")
	unowned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Memcached", Name: "sessions", UID: "uid-of-sessions", Controller: new(true)}}
	g.Expect(uncontrolled.Delete(event.DeleteEvent{Object: unowned})).To(BeTrue(), "a kind of the same name in another group is not ours")
}

func TestMemcachedOf(t *testing.T) {
	g := NewWithT(t)
	pod := storedPod("sessions-1")
	g.Expect(memcachedOf(t.Context(), &pod)).To(ConsistOf(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "sessions"}}))
}

func TestCacheByObject(t *testing.T) {
	g := NewWithT(t)
	g.Expect(CacheByObject()).To(HaveLen(1))
	for object, settings := range CacheByObject() {
		g.Expect(object).To(BeAssignableToTypeOf(&corev1.Pod{}))
		g.Expect(settings.Transform).NotTo(BeNil())
		g.Expect(settings.Label.String()).To(Equal("app.kubernetes.io/managed-by=memcached-operator"), "the cache must not keep the pods of others")
	}
}

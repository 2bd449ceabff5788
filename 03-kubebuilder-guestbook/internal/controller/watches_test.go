//workshop:given 3.3a

package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

func TestContentChanged(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.ConfigMap)
		want   bool
	}{
		"a resync":                  {change: func(*corev1.ConfigMap) {}},
		"a label changes":           {change: func(settings *corev1.ConfigMap) { settings.Labels["team"], settings.ResourceVersion = "bank", "21" }},
		"a text changes":            {change: func(settings *corev1.ConfigMap) { settings.Data["index.html.template"] = "Hello" }, want: true},
		"a binary value is removed": {change: func(settings *corev1.ConfigMap) { settings.BinaryData = nil }, want: true},
		"a key is removed":          {change: func(settings *corev1.ConfigMap) { delete(settings.Data, "about.html.template") }, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			after := storedSettings()
			test.change(after)
			g.Expect(contentChanged(event.UpdateEvent{ObjectOld: storedSettings(), ObjectNew: after})).To(Equal(test.want), "see contentChanged in watches.go")
			//workshop:step 3.7a
			before, cached := cachedSettings(g, storedSettings()), cachedSettings(g, after)
			//workshop:step 3.7a
			g.Expect(contentChanged(event.UpdateEvent{ObjectOld: before, ObjectNew: cached})).To(Equal(test.want), "the result must be the same for the cached objects")
		})
	}
}

func cachedSettings(g Gomega, settings *corev1.ConfigMap) client.Object {
	cached, err := keepDigest(settings.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cached).NotTo(BeNil(), "see keepDigest in settings.go")
	return cached.(client.Object)
}

func TestReadinessChanged(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"a resync":                        {change: func(*corev1.Pod) {}},
		"an annotation changes":           {change: func(pod *corev1.Pod) { pod.Annotations["note"], pod.ResourceVersion = "new", "41" }},
		"its address changes":             {change: func(pod *corev1.Pod) { pod.Status.PodIP = "10.0.0.2" }},
		"it is no longer ready":           {change: func(pod *corev1.Pod) { *pod = unready(*pod) }, want: true},
		"it became ready at another time": {change: func(pod *corev1.Pod) { *pod = storedPod("web-1", 9) }, want: true},
		"it is being deleted":             {change: func(pod *corev1.Pod) { pod.DeletionTimestamp = &now }, want: true},
		"it was evicted":                  {change: func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, want: true},
		"its revision changes":            {change: func(pod *corev1.Pod) { pod.Annotations[revisionAnnotation] = "other" }, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before, after := storedPod("web-1", 1), storedPod("web-1", 1)
			test.change(&after)
			g.Expect(readinessChanged(event.UpdateEvent{ObjectOld: &before, ObjectNew: &after})).To(Equal(test.want), "see readinessChanged in watches.go")
		})
	}
}

func TestUncontrolled(t *testing.T) {
	g := NewWithT(t)
	owned, another, unowned := storedChild().object, storedChild().object, newService(storedGuestbook())
	g.Expect(uncontrolled(owned)).To(BeFalse(), "a Deployment that a Guestbook controls is left to Owns, see uncontrolled in watches.go")
	g.Expect(uncontrolled(newDeployment(storedGuestbook()))).To(BeTrue(), "a Deployment whose owner reference was removed, or never set, must count as uncontrolled, see uncontrolled in watches.go")
	another.SetName("other")
	g.Expect(uncontrolled(another)).To(BeTrue(), "Owns queues the Guestbook web, but this Deployment may block the Guestbook other, see uncontrolled in watches.go")
	owned.GetOwnerReferences()[0].APIVersion = "webapp.my.domain/v1alpha1"
	g.Expect(uncontrolled(owned)).To(BeFalse(), "an owner reference from before a new version of the API still names a Guestbook, see isGuestbook in children.go")
	unowned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Guestbook", Name: "web", UID: "uid-of-web", Controller: new(true)}}
	g.Expect(uncontrolled(unowned)).To(BeTrue(), "a kind of the same name in another group is not ours")
}

func TestGuestbookOfAndConfigMapOf(t *testing.T) {
	g := NewWithT(t)
	pod := storedPod("web-1", 1)
	g.Expect(guestbookOf(t.Context(), &pod)).To(ConsistOf(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}))
	g.Expect(configMapOf(storedGuestbook())).To(ConsistOf("page-settings"), "the index needs the name of the Guestbook's ConfigMap") //workshop:step 3.6c
	g.Expect(configMapOf(&pod)).To(BeEmpty())                                                                                        //workshop:step 3.6c
}

func TestGuestbooksWith(t *testing.T) {
	g := NewWithT(t)
	kinds := runtime.NewScheme()
	g.Expect(webappv1.AddToScheme(kinds)).To(Succeed())
	second, elsewhere, otherwise := storedGuestbook(), storedGuestbook(), storedGuestbook()
	second.Name, elsewhere.Namespace, otherwise.Name, otherwise.Spec.ConfigMapName = "second", "bank", "otherwise", "other-settings"
	waits := true
	reader := fake.NewClientBuilder().WithScheme(kinds).WithIndex(&webappv1.Guestbook{}, byConfigMap, configMapOf).
		WithObjects(storedGuestbook(), second, elsewhere, otherwise).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, reader client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			waits = !(&client.ListOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency
			return reader.List(ctx, list, options...)
		},
	}).Build()
	requests := (&GuestbookReconciler{Client: reader}).guestbooksWith(t.Context(), storedSettings())
	g.Expect(requests).To(ConsistOf(
		reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}},
		reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "second"}},
	), "guestbooksWith in watches.go must return all Guestbooks that refer to the ConfigMap, in its namespace")
	g.Expect(waits).To(BeFalse(), "List must not wait for the client's own writes: add client.DisableReadYourWritesConsistency, see guestbooksWith in watches.go")
}

func TestCacheByObject(t *testing.T) {
	g := NewWithT(t)
	g.Expect(CacheByObject()).To(HaveLen(2))
	for object, settings := range CacheByObject() {
		g.Expect(settings.Transform).NotTo(BeNil(), "%T", object)
		if _, isPod := object.(*corev1.Pod); isPod {
			g.Expect(settings.Label.String()).To(Equal("app.kubernetes.io/managed-by=guestbook-controller"), "the cache must not contain pods of other programs")
		}
	}
}

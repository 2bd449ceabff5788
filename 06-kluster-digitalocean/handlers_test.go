package main

import (
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	listers "example.com/operator-workshop/06-kluster-digitalocean/pkg/generated/listers/inspirit941.dev/v1alpha1"
)

// newHandlers returns a controller with a queue and with a cache that holds the given Klusters. Any request would
// panic.
func newHandlers(t *testing.T, klusters ...*klusterv1alpha1.Kluster) *controller {
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, kluster := range klusters {
		NewWithT(t).Expect(index.Add(kluster)).To(Succeed())
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	t.Cleanup(queue.ShutDown)
	return &controller{options: defaultOptions(), klusters: listers.NewKlusterLister(index), queue: queue, retryDelays: newRetryDelays(defaultOptions().retryInterval)}
}

func TestHandlers(t *testing.T) {
	stored := newKubeconfigSecret(storedKluster(), cloud.Kubeconfig{Content: []byte("kind: Config")}, time.Now())
	stored.ResourceVersion = "1"
	changed := func(change func(*corev1.Secret)) *corev1.Secret {
		secret := stored.DeepCopy()
		secret.ResourceVersion = "2"
		change(secret)
		return secret
	}
	unchanged := func(*corev1.Secret) {}
	owner := func(change func(*metav1.OwnerReference)) func(*corev1.Secret) {
		return func(secret *corev1.Secret) { change(&secret.OwnerReferences[0]) }
	}
	tests := map[string]struct {
		event func(*controller)
		want  []string
	}{
		"a Kluster changes": {
			event: func(c *controller) { c.klusterChanged(storedKluster()) },
			want:  []string{"front"},
		},
		"a Kluster's deletion was missed": {
			event: func(c *controller) {
				c.klusterChanged(cache.DeletedFinalStateUnknown{Key: "shop/front", Obj: storedKluster()})
			},
			want: []string{"front"},
		},
		"something else arrives": {
			event: func(c *controller) { c.klusterChanged("nonsense"); c.secretChanged(nil); c.secretUpdated(nil, 1) },
		},
		"a Secret changes": {
			event: func(c *controller) { c.secretUpdated(stored, changed(unchanged)) },
			want:  []string{"front"},
		},
		"a Secret's deletion was missed": {
			event: func(c *controller) { c.secretChanged(cache.DeletedFinalStateUnknown{Obj: stored}) },
			want:  []string{"front"},
		},
		"an unchanged Secret arrives again": {
			event: func(c *controller) { c.secretUpdated(stored, stored) },
		},
		"a Secret loses its owner": {
			event: func(c *controller) {
				c.secretUpdated(stored, changed(func(secret *corev1.Secret) { secret.OwnerReferences = nil }))
			},
			want: []string{"front"},
		},
		"a Secret without an owner is deleted": {
			event: func(c *controller) {
				c.secretChanged(changed(func(secret *corev1.Secret) { secret.OwnerReferences = nil }))
			},
		},
		"a Secret whose owner has a later version": {
			event: func(c *controller) {
				c.secretChanged(changed(owner(func(reference *metav1.OwnerReference) { reference.APIVersion = klusterv1alpha1.GroupName + "/v2" })))
			},
			want: []string{"front"},
		},
		"a Secret whose owner is in another group": {
			event: func(c *controller) {
				c.secretChanged(changed(owner(func(reference *metav1.OwnerReference) { reference.APIVersion = "example.org/v1" })))
			},
		},
		"a Secret whose owner is of another kind": {
			event: func(c *controller) {
				c.secretChanged(changed(owner(func(reference *metav1.OwnerReference) { reference.Kind = "Cluster" })))
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newHandlers(t)
			test.event(c)
			c.queue.ShutDown()
			var queued []string
			for key, shutdown := c.queue.Get(); !shutdown; key, shutdown = c.queue.Get() {
				g.Expect(key.Namespace).To(Equal("shop"))
				queued = append(queued, key.Name)
				c.queue.Done(key)
			}
			g.Expect(queued).To(ConsistOf(test.want), "the queue must contain exactly these Klusters, see handlers.go")
		})
	}
}

func TestATokenChanges(t *testing.T) {
	tests := map[string]struct {
		// name is the Secret's name, and waiting means that the Kluster waits after a terminal error.
		name    string
		waiting bool
		want    int
	}{
		"a Kluster waits for it":               {name: "digitalocean", waiting: true, want: 1},
		"a Kluster uses it, and all is well":   {name: "digitalocean"},
		"a Kluster waits, and names another":   {name: "another", waiting: true},
		"no Kluster waits, and none is queued": {name: "another"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kluster := storedKluster()
			key := cache.MetaObjectToName(kluster)
			c := newHandlers(t, kluster)
			if test.waiting {
				c.retryDelays.When(key)
			}
			c.tokenChanged(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: kluster.Namespace, Name: test.name}})
			g.Expect(c.queue.Len()).To(Equal(test.want), "see tokenChanged in handlers.go")
			if test.want > 0 {
				g.Expect(c.retryDelays.When(key)).To(Equal(c.options.retryInterval), "with a new token, the waits begin again, see tokenChanged in handlers.go")
			}
		})
	}
}

func TestNoTokenIsCached(t *testing.T) {
	g := NewWithT(t)
	applied := map[string]string{corev1.LastAppliedConfigAnnotation: "the whole Secret"}
	stripped, err := stripAnnotations(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "digitalocean", Annotations: applied}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stripped).To(HaveField("Annotations", BeEmpty()), "see stripAnnotations in controller.go")
}

func TestReconcileHasNothingToDo(t *testing.T) {
	now := metav1.Now()
	key := cache.MetaObjectToName(storedKluster())
	tests := map[string]struct {
		prepare func(*controller, *klusterv1alpha1.Kluster)
	}{
		"the Kluster is gone": {
			prepare: func(c *controller, _ *klusterv1alpha1.Kluster) { c.klusters = newHandlers(t).klusters },
		},
		"another finalizer keeps the Kluster": {
			prepare: func(_ *controller, kluster *klusterv1alpha1.Kluster) {
				kluster.DeletionTimestamp, kluster.Finalizers = &now, []string{"example.com/theirs"}
			},
		},
		"the cache does not show our last write yet": {
			prepare: func(c *controller, kluster *klusterv1alpha1.Kluster) {
				c.staleVersions.Store(key, kluster.ResourceVersion)
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kluster := storedKluster()
			c := newHandlers(t, kluster)
			test.prepare(c, kluster) // this is the object in the cache
			after, err := c.reconcile(t.Context(), key)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(after).To(BeZero())
		})
	}
}

func TestReconcileForgetsAKlusterThatIsGone(t *testing.T) {
	g := NewWithT(t)
	key := cache.MetaObjectToName(storedKluster())
	c := newHandlers(t)
	c.staleVersions.Store(key, "30")
	c.missingSince.Store(key, time.Now())
	c.outageSince.Store(key, time.Now())
	c.retryDelays.When(key)
	_, err := c.reconcile(t.Context(), key)
	g.Expect(err).NotTo(HaveOccurred(), "nothing is left to do, see reconcile in reconcile.go")
	for name, remembered := range map[string]*sync.Map{"staleVersions": &c.staleVersions, "missingSince": &c.missingSince, "outageSince": &c.outageSince} {
		_, found := remembered.Load(key)
		g.Expect(found).To(BeFalse(), "%s still has the key of a Kluster that is gone, see reconcile in reconcile.go", name)
	}
	g.Expect(c.retryDelays.NumRequeues(key)).To(BeZero(), "see reconcile in reconcile.go")
}

func TestIsReleased(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		deleted    bool
		finalizers []string
		want       bool
	}{
		"it is new, and has no finalizer":          {},
		"it is being deleted, and has ours":        {deleted: true, finalizers: []string{"example.com/theirs", klusterv1alpha1.Finalizer}},
		"it is being deleted, and has only theirs": {deleted: true, finalizers: []string{"example.com/theirs"}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kluster := storedKluster()
			kluster.Finalizers = test.finalizers
			if test.deleted {
				kluster.DeletionTimestamp = &now
			}
			NewWithT(t).Expect(isReleased(kluster)).To(Equal(test.want), "see isReleased in metadata.go")
		})
	}
}

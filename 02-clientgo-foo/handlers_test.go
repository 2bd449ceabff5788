package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
	listers "example.com/operator-workshop/02-clientgo-foo/pkg/generated/listers/example/v1alpha1"
)

// newHandlers returns a controller with the cache and the queue that event handlers use. The cache has three Foos:
// front, which controls the Deployment web; waiting, whose spec names the same Deployment; and a Foo in another
// namespace.
func newHandlers(t *testing.T) *controller {
	index := unlisted{cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byDeploymentName: indexByDeploymentName}), t}
	waiting := storedFoo()
	waiting.Name, waiting.UID = "waiting", "uid-of-waiting"
	elsewhere := storedFoo()
	elsewhere.Namespace, elsewhere.UID = "bank", "uid-of-elsewhere"
	for _, foo := range []*examplev1alpha1.Foo{storedFoo(), waiting, elsewhere} {
		NewWithT(t).Expect(index.Add(foo)).To(Succeed())
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	t.Cleanup(queue.ShutDown)
	return &controller{fooIndex: index, foos: listers.NewFooLister(index), queue: queue}
}

// unlisted is a cache of Foos that fails the test if code lists it instead of using a key or the index
// byDeploymentName. A lister's List fails the test, too, because it calls the cache's List.
type unlisted struct {
	cache.Indexer
	t *testing.T
}

func (u unlisted) List() []any {
	u.t.Error("there may be thousands of Foos: don't list them, find those that you need with c.fooIndex.ByIndex, see deploymentChanged in handlers.go")
	return nil
}

// observedInformer is an informer that keeps the handlers that are registered with it.
type observedInformer struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
}

func newObservedInformer(example runtime.Object) *observedInformer {
	return &observedInformer{SharedIndexInformer: cache.NewSharedIndexInformer(&cache.ListWatch{}, example, 0, cache.Indexers{})}
}

func (i *observedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

func (i *observedInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &resync})
}

func (i *observedInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	return i.SharedIndexInformer.AddEventHandlerWithOptions(handler, options)
}

// expectQueued sends each kind of event to the informer's handlers, and expects each to queue the Foo front.
func (i *observedInformer) expectQueued(g Gomega, c *controller, before, after any) {
	for kind, send := range map[string]func(cache.ResourceEventHandler){
		"additions": func(handler cache.ResourceEventHandler) { handler.OnAdd(after, false) },
		"updates":   func(handler cache.ResourceEventHandler) { handler.OnUpdate(before, after) },
		"deletions": func(handler cache.ResourceEventHandler) { handler.OnDelete(after) },
	} {
		for _, handler := range i.handlers {
			send(handler)
		}
		g.Expect(c.queue.Len()).To(Equal(1), "%s of a %T must queue the Foo, see handleEvents in handlers.go", kind, after)
		key, _ := c.queue.Get()
		c.queue.Done(key)
		g.Expect(key).To(Equal(cache.NewObjectName("shop", "front")))
	}
}

func TestHandleEvents(t *testing.T) {
	g := NewWithT(t)
	c := newHandlers(t)
	foos, deployments := newObservedInformer(&examplev1alpha1.Foo{}), newObservedInformer(&appsv1.Deployment{})
	g.Expect(c.handleEvents(foos, deployments)).To(Succeed())
	g.Expect(c.handlers).NotTo(BeEmpty(), "c.handlers must contain the handler that start waits for, see handleEvents in handlers.go")
	//workshop:step 2.12a
	g.Expect(c.handlers).To(HaveLen(2), "start must wait for both handlers, see handleEvents in handlers.go")
	foos.expectQueued(g, c, storedFoo(), storedFoo())
	//workshop:step 2.12a
	deployments.expectQueued(g, c, formerDeployment(), inVersion("3", formerDeployment()))
}

// handled is an event, and the Foos that must be queued for it.
type handled struct {
	event func(*controller)
	want  []string
}

func TestHandlers(t *testing.T) {
	owner := func(change func(*metav1.OwnerReference)) *appsv1.Deployment {
		deployment := formerDeployment()
		change(&deployment.OwnerReferences[0])
		return deployment
	}
	tests := map[string]handled{
		"a Foo changes": {
			event: func(c *controller) { c.fooChanged(storedFoo()) },
			want:  []string{"front"},
		},
		"a Foo's deletion was missed": {
			event: func(c *controller) { c.fooChanged(cache.DeletedFinalStateUnknown{Key: "shop/front", Obj: storedFoo()}) },
			want:  []string{"front"},
		},
		"something else arrives": {
			event: func(c *controller) { c.fooChanged("nonsense"); c.deploymentChanged(nil); c.deploymentUpdated(nil, 1) },
		},
		"a Deployment changes": {
			event: func(c *controller) { c.deploymentChanged(formerDeployment()) },
			want:  []string{"front"},
		},
		"a Deployment's deletion was missed": {
			event: func(c *controller) { c.deploymentChanged(cache.DeletedFinalStateUnknown{Obj: formerDeployment()}) },
			want:  []string{"front"},
		},
		"the old Deployment of a recreated Foo changes": {
			event: func(c *controller) {
				c.deploymentChanged(owner(func(reference *metav1.OwnerReference) { reference.UID = "uid-of-deleted" }))
			},
		},
		"the Deployment of a Foo of another group changes": {
			event: func(c *controller) {
				c.deploymentChanged(owner(func(reference *metav1.OwnerReference) { reference.APIVersion = "example.org/v1" }))
			},
		},
		"a Deployment that another kind controls changes": {
			event: func(c *controller) {
				c.deploymentChanged(owner(func(reference *metav1.OwnerReference) { reference.Kind = "Bar" }))
			},
		},
		"a Deployment is updated": {
			event: func(c *controller) { c.deploymentUpdated(formerDeployment(), inVersion("3", formerDeployment())) },
			want:  []string{"front"},
		},
		"an unchanged Deployment arrives again": {
			event: func(c *controller) { c.deploymentUpdated(formerDeployment(), formerDeployment()) },
		},
		"a Deployment loses its owner": {
			event: func(c *controller) {
				c.deploymentUpdated(formerDeployment(), inVersion("3", ownerless(formerDeployment())))
			},
			want: []string{"front"},
		},
	}
	for name, test := range tests {
		t.Run(name, test.run)
	}
}

func TestHandlersFindTheFoosThatWait(t *testing.T) {
	current := func() *appsv1.Deployment { return inVersion("2", storedDeployment()) }
	tests := map[string]handled{
		"for its name when a Foo's Deployment changes": {
			event: func(c *controller) { c.deploymentChanged(current()) },
			want:  []string{"front", "waiting"},
		},
		"for its name when the deletion of a Foo's Deployment was missed": {
			event: func(c *controller) { c.deploymentChanged(cache.DeletedFinalStateUnknown{Obj: current()}) },
			want:  []string{"front", "waiting"},
		},
		"for its name when a Deployment without an owner is deleted": {
			event: func(c *controller) { c.deploymentChanged(ownerless(current())) },
			want:  []string{"front", "waiting"},
		},
		"but not for another name": {
			event: func(c *controller) { c.deploymentChanged(ownerless(formerDeployment())) },
		},
	}
	for name, test := range tests {
		t.Run(name, test.run)
	}
}

// formerDeployment returns a Deployment that the Foo front controls, but whose name appears in no Foo's spec.
func formerDeployment() *appsv1.Deployment {
	deployment := inVersion("2", storedDeployment())
	deployment.Name = "former"
	return deployment
}

func inVersion(version string, deployment *appsv1.Deployment) *appsv1.Deployment {
	deployment.ResourceVersion = version
	return deployment
}

func ownerless(deployment *appsv1.Deployment) *appsv1.Deployment {
	deployment.OwnerReferences = nil
	return deployment
}

func (h handled) run(t *testing.T) {
	g := NewWithT(t)
	c := newHandlers(t)
	h.event(c)
	c.queue.ShutDown()
	var queued []string
	for key, shutdown := c.queue.Get(); !shutdown; key, shutdown = c.queue.Get() {
		g.Expect(key.Namespace).To(Equal("shop"))
		queued = append(queued, key.Name)
		c.queue.Done(key)
	}
	g.Expect(queued).To(ConsistOf(h.want), "the Foos that must be queued, see handlers.go")
}

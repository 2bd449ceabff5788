package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	kubeinformers "k8s.io/client-go/informers"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
	informers "example.com/operator-workshop/02-clientgo-foo/pkg/generated/informers/externalversions"
	listers "example.com/operator-workshop/02-clientgo-foo/pkg/generated/listers/example/v1alpha1"
)

const (
	// queueName is the name of the queue in its metrics.
	queueName = "foo"
	// After its n-th failure in a row, a Foo waits firstRetry * 2^(n-1), but at most lastRetry.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 30 * time.Second
	// cacheTimeout limits how long start waits for the caches, which may never fill if the controller lacks a permission.
	cacheTimeout = 2 * time.Minute
)

// The informers below need these permissions.
// +kubebuilder:rbac:groups=example.com,resources=foos,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch

// controller reconciles Foos. Informers fill its caches, event handlers put the
// keys of Foos into its queue, and workers take them out.
type controller struct {
	clients  *clients
	workers  int
	drain    time.Duration
	recorder events.EventRecorder

	fooInformers  informers.SharedInformerFactory
	kubeInformers kubeinformers.SharedInformerFactory
	stopInformers context.CancelFunc
	handlers      []cache.DoneChecker

	foos            listers.FooLister
	deployments     appslisters.DeploymentLister
	fooIndex        cache.Indexer
	deploymentIndex cache.Indexer
	queue           workqueue.TypedRateLimitingInterface[cache.ObjectName]
	lastStatus      staleVersions
}

// newController creates a controller. Its queue is already running, and stop shuts it down.
func newController(clients *clients, options options) (*controller, error) {
	fooInformers := informers.NewSharedInformerFactoryWithOptions(clients.foo, options.resyncPeriod,
		informers.WithNamespace(options.namespace), informers.WithTransform(stripManagedFields))
	// A resync of a Foo also checks its Deployment, so Deployments need no resync of their own.
	kubeInformers := kubeinformers.NewSharedInformerFactoryWithOptions(clients.kube, 0,
		kubeinformers.WithNamespace(options.namespace), kubeinformers.WithTransform(stripManagedFields))
	fooInformer := fooInformers.Example().V1alpha1().Foos()
	deploymentInformer := kubeInformers.Apps().V1().Deployments()
	if err := fooInformer.Informer().AddIndexers(cache.Indexers{byDeploymentName: indexByDeploymentName}); err != nil {
		return nil, fmt.Errorf("index the Foos: %w", err)
	}
	if err := deploymentInformer.Informer().AddIndexers(cache.Indexers{byOwner: indexByOwner}); err != nil {
		return nil, fmt.Errorf("index the Deployments: %w", err)
	}

	c := &controller{
		clients:         clients,
		workers:         options.workers,
		drain:           options.drainTimeout,
		fooInformers:    fooInformers,
		kubeInformers:   kubeInformers,
		stopInformers:   func() {},
		foos:            fooInformer.Lister(),
		deployments:     deploymentInformer.Lister(),
		fooIndex:        fooInformer.Informer().GetIndexer(),
		deploymentIndex: deploymentInformer.Informer().GetIndexer(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: queueName}),
	}
	if err := c.handleEvents(fooInformer.Informer(), deploymentInformer.Informer()); err != nil {
		c.queue.ShutDown()
		return nil, err
	}
	return c, nil
}

// stripManagedFields is a cache transform that saves memory: the controller never reads the managed fields.
func stripManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// start starts the informers, and waits until the caches are filled. It returns an error if ctx is done first, or
// after cacheTimeout. The informers keep running when ctx is done, because the caches must stay current while the
// queue is drained.
func (c *controller) start(ctx context.Context) error {
	var informing context.Context
	informing, c.stopInformers = context.WithCancel(context.WithoutCancel(ctx))
	c.fooInformers.StartWithContext(informing)
	c.kubeInformers.StartWithContext(informing)

	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	if !cache.WaitFor(ctx, "", c.handlers...) { // with a name, it would log the handlers' Go names
		return fmt.Errorf("fill the caches: not done after %s: look for the reason in the log, for example \"forbidden\"", cacheTimeout)
	}
	return nil
}

// synced reports whether the caches are filled and the handlers have seen every object of the informers' initial lists.
func (c *controller) synced() bool {
	for _, handler := range c.handlers {
		if !cache.IsDone(handler) {
			return false
		}
	}
	return true
}

// stop shuts the queue down, stops the informers and waits for their goroutines.
func (c *controller) stop() {
	c.queue.ShutDown()
	c.stopInformers()
	c.fooInformers.Shutdown()
	c.kubeInformers.Shutdown()
}

// work runs the workers until ctx is done, and then until the queue is empty. If leading is cancelled before that, work
// aborts the requests in progress and leaves the rest of the queue unprocessed.
//
//workshop:step 2.8b
func (c *controller) work(ctx, leading context.Context, recorder events.EventRecorder) error {
	c.recorder = recorder
	//workshop:until 2.14c working := leading
	//workshop:step 2.14c
	working, abort := context.WithCancel(leading)
	//workshop:step 2.14c
	defer abort()
	var workers sync.WaitGroup
	for range c.workers {
		workers.Go(func() {
			for c.processNext(working) {
			}
		})
	}

	select {
	case <-ctx.Done():
	case <-leading.Done():
	}
	// From here on the queue ignores new keys, and workers return when it is empty.
	c.queue.ShutDown()
	//workshop:step 2.14c
	logger := klog.FromContext(ctx)
	//workshop:step 2.14c
	logger.Info("Stopping", "queued", c.queue.Len())
	//workshop:step 2.14c
	// When the drain timeout expires, work aborts the requests in progress and returns an error.
	timeout := time.AfterFunc(c.drain, abort)
	workers.Wait()
	//workshop:until 2.14c return nil
	//workshop:step 2.14c
	logger.Info("Stopped")
	//workshop:step 2.14c
	if timeout.Stop() || leading.Err() != nil {
		return nil
	}
	//workshop:step 2.14c
	return fmt.Errorf("work was still in progress %s after the signal to stop: the next start continues it; to give it longer, raise --drain-timeout", c.drain)
}

// processNext takes one key from the queue and syncs it. After a failure, the key
// returns to the queue with backoff. processNext returns false when the queue is shut
// down and empty, or if ctx was done before the sync. The queue never gives a key to
// two workers at a time.
//
//workshop:step 2.8a
func (c *controller) processNext(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if ctx.Err() != nil {
		return false
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "foo", key)
	begun := time.Now()
	err := c.sync(klog.NewContext(ctx, logger), key)
	if err == nil {
		observeSync(resultSuccess, begun)
		c.queue.Forget(key)
		return true
	}
	c.queue.AddRateLimited(key)
	if ctx.Err() != nil || isExpected(err) {
		observeSync(resultRetry, begun)
		logger.V(4).Info("Trying again", "reason", err)
		return true
	}
	observeSync(resultError, begun)
	logger.Error(err, "Sync failed, trying again")
	return true
}

const (
	// byDeploymentName is the index of Foos by their namespace and spec.deploymentName.
	byDeploymentName = "deploymentName"
	// byOwner is the index of Deployments by the UID of the Foo that controls them.
	byOwner = "owner"
)

//workshop:step 2.12b
func indexByDeploymentName(object any) ([]string, error) {
	foo, ok := object.(*examplev1alpha1.Foo)
	if !ok {
		return nil, fmt.Errorf("index a Foo: got %T", object)
	}
	return []string{cache.NewObjectName(foo.Namespace, foo.Spec.DeploymentName).String()}, nil
}

//workshop:step 2.14b
func indexByOwner(object any) ([]string, error) {
	deployment, ok := object.(*appsv1.Deployment)
	if !ok {
		return nil, fmt.Errorf("index a Deployment: got %T", object)
	}
	owner := controllingFoo(deployment)
	if owner == nil {
		return nil, nil
	}
	return []string{string(owner.UID)}, nil
}

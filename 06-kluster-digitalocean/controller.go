package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	informers "example.com/operator-workshop/06-kluster-digitalocean/pkg/generated/informers/externalversions"
	listers "example.com/operator-workshop/06-kluster-digitalocean/pkg/generated/listers/inspirit941.dev/v1alpha1"
)

const (
	// queueName is the name of the queue in its metrics.
	queueName = "kluster"
	// lastRetry limits the wait after errors that are not terminal. After the n-th in a row, a Kluster waits
	// options.firstRetry * 2^(n-1), but at most lastRetry.
	lastRetry = 30 * time.Second
	// cacheTimeout bounds how long the caches may take to fill. Without permission to list, they never fill.
	cacheTimeout = 2 * time.Minute
	// retryGrowth limits the wait after terminal errors to this multiple of --retry-interval: by default, to 10 minutes.
	retryGrowth = 20
)

// The permissions that the informers below need.
// +kubebuilder:rbac:groups=inspirit941.dev,resources=klusters,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch

// controller reconciles Klusters. Informers fill its caches, event handlers put the keys of Klusters into its queue,
// and workers process them.
type controller struct {
	options  options
	clients  *clients
	recorder events.EventRecorder
	// openAccount makes a client for a token's account, and disconnect closes the idle connections of all these clients.
	openAccount func(token string) cloud.CloudProvider
	disconnect  func()

	klusterInformers informers.SharedInformerFactory
	kubeInformers    kubeinformers.SharedInformerFactory
	tokenInformers   metadatainformer.SharedInformerFactory
	stopInformers    context.CancelFunc
	handlers         []cache.DoneChecker

	klusters listers.KlusterLister
	// secrets lists only the operator's own Secrets, which hold the kubeconfigs.
	secrets corelisters.SecretLister
	queue   workqueue.TypedRateLimitingInterface[cache.ObjectName]
	// retryDelays returns how long a Kluster waits after a terminal error without a requeueAfter. With each further
	// one in a row, the wait doubles, up to a limit (see retryGrowth).
	retryDelays workqueue.TypedRateLimiter[cache.ObjectName]
	// staleVersions maps a Kluster's key to the resource version that the operator's last write has made stale.
	staleVersions sync.Map
	// missingSince maps a Kluster's key to the time when the operator first found its cluster missing in the cloud.
	missingSince sync.Map
	// outageSince maps a Kluster's key to the time when the operator first found the cloud unavailable for it.
	outageSince sync.Map
}

// newController connects the parts. It starts only the queue; stop shuts the queue down.
func newController(clients *clients, options options) (*controller, error) {
	klusterInformers := informers.NewSharedInformerFactoryWithOptions(clients.kluster, options.resyncPeriod,
		informers.WithNamespace(options.namespace), informers.WithTransform(stripManagedFields))
	ownSecrets := func(list *metav1.ListOptions) { list.LabelSelector = managedByLabel + "=" + programName }
	kubeInformers := kubeinformers.NewSharedInformerFactoryWithOptions(clients.kube, 0,
		kubeinformers.WithNamespace(options.namespace), kubeinformers.WithTransform(stripManagedFields),
		kubeinformers.WithTweakListOptions(ownSecrets))
	// Tokens are in other people's Secrets. The operator reads each one when it needs it, and caches none: of these
	// Secrets, the informer gets only the metadata.
	withToken := func(list *metav1.ListOptions) { list.FieldSelector = "type=" + string(klusterv1alpha1.TokenSecretType) }
	tokenInformers := metadatainformer.NewFilteredSharedInformerFactory(clients.metadata, 0, options.namespace, withToken)
	klusterInformer := klusterInformers.Inspirit941().V1alpha1().Klusters()
	secretInformer := kubeInformers.Core().V1().Secrets()
	tokenInformer := tokenInformers.ForResource(secretsResource).Informer()

	c := &controller{
		options:          options,
		clients:          clients,
		klusterInformers: klusterInformers,
		kubeInformers:    kubeInformers,
		tokenInformers:   tokenInformers,
		stopInformers:    func() {},
		klusters:         klusterInformer.Lister(),
		secrets:          secretInformer.Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](options.firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: queueName}),
		retryDelays: newRetryDelays(options.retryInterval),
	}
	c.openAccount, c.disconnect = options.cloud.newConnector()
	err := tokenInformer.SetTransform(stripAnnotations)
	if err == nil {
		err = c.handleEvents(klusterInformer.Informer(), secretInformer.Informer(), tokenInformer)
	}
	if err != nil {
		c.queue.ShutDown()
		return nil, err
	}
	return c, nil
}

func newRetryDelays(interval time.Duration) workqueue.TypedRateLimiter[cache.ObjectName] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](interval, retryGrowth*interval)
}

// stripAnnotations removes the annotations of a token's Secret: kubectl apply leaves a copy of the token in one of
// them.
func stripAnnotations(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetAnnotations(nil)
	}
	return stripManagedFields(object)
}

// stripManagedFields saves memory: nothing here reads the managed fields.
func stripManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// start fills the caches. They outlive ctx, because they must stay current while the queue drains.
func (c *controller) start(ctx context.Context) error {
	var informing context.Context
	informing, c.stopInformers = context.WithCancel(context.WithoutCancel(ctx))
	c.klusterInformers.StartWithContext(informing)
	c.kubeInformers.StartWithContext(informing)
	c.tokenInformers.Start(informing.Done())

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

// stop shuts the queue down, stops the informers, waits for their goroutines, and closes idle connections to the cloud.
func (c *controller) stop() {
	c.queue.ShutDown()
	c.stopInformers()
	c.klusterInformers.Shutdown()
	c.kubeInformers.Shutdown()
	c.tokenInformers.Shutdown()
	c.disconnect()
}

// work runs the workers until ctx is done and the queue is empty. If leading is cancelled, work aborts all requests
// immediately. If the drain timeout expires, work also aborts all requests, and returns an error.
func (c *controller) work(ctx, leading context.Context, recorder events.EventRecorder) error {
	c.recorder = recorder
	working, abort := context.WithCancel(leading)
	defer abort()
	var workers sync.WaitGroup
	for range c.options.workers {
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
	logger := klog.FromContext(ctx)
	logger.Info("Stopping", "queued", c.queue.Len())
	timeout := time.AfterFunc(c.options.drainTimeout, abort)
	workers.Wait()
	logger.Info("Stopped")
	if timeout.Stop() || leading.Err() != nil {
		return nil
	}
	return fmt.Errorf("work was still in progress %s after the signal to stop: the next start continues it; to give it longer, raise --drain-timeout", c.options.drainTimeout)
}

// processNext processes one key from the queue. It returns false when the queue is shut down and empty, or ctx has
// ended. The queue never gives the same key to two workers at a time.
func (c *controller) processNext(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if ctx.Err() != nil {
		return false
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "kluster", key)
	begun := time.Now()
	after, err := c.reconcile(klog.NewContext(ctx, logger), key)
	if err == nil {
		observeReconcile(resultSuccess, begun)
		c.queue.Forget(key)
		if after > 0 { // meanwhile, the worker is free for other keys
			c.queue.AddAfter(key, after)
		}
		return true
	}
	c.queue.AddRateLimited(key)
	if ctx.Err() != nil || isExpected(err) {
		observeReconcile(resultRetry, begun)
		logger.V(4).Info("Trying again", "reason", err)
		return true
	}
	observeReconcile(resultError, begun)
	logger.Error(err, "Reconcile failed, trying again")
	return true
}

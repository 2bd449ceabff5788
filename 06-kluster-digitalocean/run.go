package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	clientset "example.com/operator-workshop/06-kluster-digitalocean/pkg/generated/clientset/versioned"
)

// errLeaseLost ends the program: another replica may be working by now.
var errLeaseLost = errors.New("lost the Lease: another replica takes over")

// discoveryBackoff lets the first request get over a hiccup of the API server: 4 tries within 2 seconds.
var discoveryBackoff = wait.Backoff{Steps: 4, Duration: 100 * time.Millisecond, Factor: 4}

// run works until ctx ends and then finishes what it has begun, within
// options.drainTimeout. It returns an error if it can't start, can't finish in
// time, or loses the Lease. No goroutine of it is left when it returns, and many
// runs may share a process.
func run(ctx context.Context, config *rest.Config, options options) error {
	if err := options.validate(); err != nil {
		return err
	}
	clients, err := newClients(config)
	if err != nil {
		return err
	}
	defer clients.close()
	if err := clients.checkInstalled(ctx); err != nil {
		return ignoreStop(ctx, err)
	}

	// Deferred calls run in reverse order, which is the order to stop in: events, caches, servers, and at
	// last, when nothing can write any more, the Lease.
	lease, err := newLease(clients.kube, options.leaderElection)
	if err != nil {
		return err
	}
	defer lease.release(ctx)
	controller, err := newController(clients, options)
	if err != nil {
		return err
	}
	servers, err := startServers(ctx, options, lease.Check, controller.synced)
	if err != nil {
		controller.stop() // its queue runs already
		return err
	}
	defer servers.stop()
	defer controller.stop()
	if err := controller.start(ctx); err != nil {
		return ignoreStop(ctx, err)
	}
	leading, err := lease.acquire(ctx)
	if err != nil {
		return ignoreStop(ctx, err)
	}
	recorder, err := startRecorder(leading, clients.kube.EventsV1())
	if err != nil {
		return err
	}
	defer recorder.stop()

	klog.FromContext(ctx).Info("Working", "version", version, "revision", revision, "namespace", options.namespace, "workers", options.workers)
	err = controller.work(ctx, leading, recorder)
	if leading.Err() != nil {
		return errLeaseLost
	}
	return err
}

// ignoreStop drops an error that only says that ctx has ended.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// clients are the connections to the API server.
type clients struct {
	kube    kubernetes.Interface
	kluster clientset.Interface
	// metadata reads the metadata of objects and nothing else of them.
	metadata metadata.Interface
	http     *http.Client
}

func newClients(config *rest.Config) (*clients, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), programName+"/"+version)
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make an HTTP client: %w", err)
	}
	kube, err := kubernetes.NewForConfigAndClient(config, connection)
	if err != nil {
		return nil, fmt.Errorf("make a client for Kubernetes' own kinds: %w", err)
	}
	kluster, err := clientset.NewForConfigAndClient(config, connection)
	if err != nil {
		return nil, fmt.Errorf("make a client for Klusters: %w", err)
	}
	meta, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), connection)
	if err != nil {
		return nil, fmt.Errorf("make a client for metadata: %w", err)
	}
	return &clients{kube: kube, kluster: kluster, metadata: meta, http: connection}, nil
}

func (c *clients) close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// errNotInstalled tells a learner what to do, whatever the informers would say.
var errNotInstalled = errors.New("the cluster does not know Klusters: install them with `make stage-6 install` in the repository's root")

// checkInstalled returns an error if the API server doesn't serve Klusters. An
// informer would only log that, again and again.
func (c *clients) checkInstalled(ctx context.Context) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, discoveryBackoff, func(ctx context.Context) (bool, error) {
		last = c.findKlusters(ctx)
		if errors.Is(last, errNotInstalled) {
			return false, last
		}
		return last == nil, nil
	})
	if wait.Interrupted(err) {
		return last
	}
	return err
}

// findKlusters asks the API server what it serves. Any user may ask that, so it needs no RBAC rule.
func (c *clients) findKlusters(ctx context.Context) error {
	version := klusterv1alpha1.SchemeGroupVersion.String()
	found, err := discovery.ToServerResourcesInterfaceWithContext(c.kluster.Discovery()).ServerResourcesForGroupVersionWithContext(ctx, version)
	if apierrors.IsNotFound(err) {
		return errNotInstalled
	}
	if err != nil {
		return fmt.Errorf("ask the API server for %s: %w", version, err)
	}
	isKlusters := func(resource metav1.APIResource) bool { return resource.Name == "klusters" }
	if !slices.ContainsFunc(found.APIResources, isKlusters) {
		return errNotInstalled
	}
	return nil
}

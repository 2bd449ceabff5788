package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	clientset "example.com/operator-workshop/06-kluster-digitalocean/pkg/generated/clientset/versioned"
	"example.com/operator-workshop/06-kluster-digitalocean/pkg/generated/clientset/versioned/scheme"
	"example.com/operator-workshop/lifecycle"
)

// errLeaseLost ends the program, because another replica may already be working.
var errLeaseLost = errors.New("lost the Lease: another replica may take over")

// errNotInstalled replaces [lifecycle.ErrNotInstalled] and says what to do.
var errNotInstalled = errors.New("the cluster does not know Klusters: install the CRD with `make stage-6 install` in the repository's root")

// Permissions for events, and for the Lease in the operator's own namespace.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=kluster-system,roleName=kluster-operator-leader-election,resources=leases,verbs=get;create;update

// run works until ctx is done, and then has options.drainTimeout to finish the work that is queued or in progress.
// It returns an error if it can't start, can't finish in time, or loses the Lease. When it returns, all its
// goroutines have ended, so several runs may share a process.
func run(ctx context.Context, config *rest.Config, options options) error {
	if err := options.validate(); err != nil {
		return err
	}
	clients, err := newClients(config)
	if err != nil {
		return err
	}
	defer clients.close()
	err = lifecycle.CheckInstalled(ctx, clients.kluster.Discovery(), klusterv1alpha1.SchemeGroupVersion.WithResource("klusters"))
	if errors.Is(err, lifecycle.ErrNotInstalled) {
		return errNotInstalled
	}
	if err != nil {
		return ignoreStop(ctx, err)
	}

	// Deferred calls run in reverse order, so the parts stop in this order: events, caches, servers, and finally, when
	// nothing can write any more, the Lease.
	lease, err := lifecycle.NewLease(clients.kube, programName, options.LeaderElection)
	if err != nil {
		return err
	}
	defer lease.Release(ctx)
	controller, err := newController(clients, options)
	if err != nil {
		return err
	}
	servers, err := lifecycle.StartServers(ctx, options.Options, lease.Check, controller.synced)
	if err != nil {
		controller.stop() // its queue is already running
		return err
	}
	defer servers.Stop()
	defer controller.stop()
	if err := controller.start(ctx); err != nil {
		return ignoreStop(ctx, err)
	}
	leading, err := lease.Acquire(ctx)
	if err != nil {
		return ignoreStop(ctx, err)
	}
	recorder, err := lifecycle.StartRecorder(leading, clients.kube.EventsV1(), scheme.Scheme, programName)
	if err != nil {
		return err
	}
	defer recorder.Stop()

	klog.FromContext(ctx).Info("Working", "version", version, "revision", revision, "namespace", options.namespace, "workers", options.workers)
	err = controller.work(ctx, leading, recorder)
	if leading.Err() != nil {
		return errLeaseLost
	}
	return err
}

// ignoreStop returns nil if ctx is done, because the error then only reports that.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// clients holds the clients of the API server, and the HTTP client that they share.
type clients struct {
	kube    kubernetes.Interface
	kluster clientset.Interface
	// metadata reads only the metadata of objects.
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

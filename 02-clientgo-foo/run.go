package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
	clientset "example.com/operator-workshop/02-clientgo-foo/pkg/generated/clientset/versioned"
	"example.com/operator-workshop/lifecycle"
)

// errLeaseLost ends the program: another replica may be leading already.
var errLeaseLost = errors.New("lost the Lease: another replica may take over")

// errNotInstalled says what to do about [lifecycle.ErrNotInstalled].
var errNotInstalled = errors.New("the cluster does not know Foos: install the CRD with `make stage-2 install`, or `kubectl apply --server-side -f config/crd/bases`")

// run works until ctx is done, and then has options.drainTimeout to finish the work that is queued or in progress.
// It returns an error if it can't start, can't finish in time, or loses the Lease. It leaves no goroutines behind.
// A process may call run several times.
func run(ctx context.Context, config *rest.Config, options options) error {
	if err := options.validate(); err != nil {
		return err
	}
	clients, err := newClients(config)
	if err != nil {
		return err
	}
	defer clients.close()
	err = lifecycle.CheckInstalled(ctx, clients.foo.Discovery(), examplev1alpha1.SchemeGroupVersion.WithResource("foos"))
	if errors.Is(err, lifecycle.ErrNotInstalled) {
		return errNotInstalled
	}
	if err != nil {
		return ignoreStop(ctx, err)
	}

	// Deferred calls run in reverse order, so the events stop first, then the caches and the servers. The Lease is
	// released after all writes.
	lease, err := newLease(clients.kube, options.LeaderElection)
	if err != nil {
		return err
	}
	defer lease.release(ctx)
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

// ignoreStop drops the error if ctx is done: a start that is interrupted by the signal to stop has not failed.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// clients holds the two clientsets, and the HTTP client that they share.
type clients struct {
	kube kubernetes.Interface
	foo  clientset.Interface
	http *http.Client
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
	foo, err := clientset.NewForConfigAndClient(config, connection)
	if err != nil {
		return nil, fmt.Errorf("make a client for Foos: %w", err)
	}
	return &clients{kube: kube, foo: foo, http: connection}, nil
}

func (c *clients) close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

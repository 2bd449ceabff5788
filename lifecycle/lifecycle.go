// Package lifecycle contains what an operator written with client-go needs besides its controller: flags, the
// connection to a cluster, leader election, Events, and servers for probes and metrics. In controller-runtime, the
// manager does most of this.
//
// Stage 2 has its own code for leader election and Events, because it teaches how
// they work, and uses the rest. Stage 6 uses the whole package. The order of a run is:
//
//	lease, err := lifecycle.NewLease(kube, name, options.LeaderElection)
//	defer lease.Release(ctx) // last, when nothing can write any more
//	servers, err := lifecycle.StartServers(ctx, options, lease.Check, cachesFilled)
//	defer servers.Stop()
//	// fill the caches
//	leading, err := lease.Acquire(ctx)
//	recorder, err := lifecycle.StartRecorder(leading, kube.EventsV1(), scheme, name)
//	defer recorder.Stop()
//	// work until ctx ends, then drain the queue; leading ends when the Lease is lost
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
)

// ErrNotInstalled means that the API server does not serve a kind.
var ErrNotInstalled = errors.New("the cluster does not know the kind")

// discoveryBackoff lets an operator's first request survive a brief failure of the API server: 4 tries in about 2
// seconds.
var discoveryBackoff = wait.Backoff{Steps: 4, Duration: 100 * time.Millisecond, Factor: 4}

// CheckInstalled returns ErrNotInstalled if the API server does not serve a resource such as klusters. An informer
// would only log the error over and over. CheckInstalled retries after other errors (see discoveryBackoff). By default,
// every authenticated user may make discovery requests, so this needs no RBAC rule of its own.
func CheckInstalled(ctx context.Context, client discovery.DiscoveryInterface, resource schema.GroupVersionResource) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, discoveryBackoff, func(ctx context.Context) (bool, error) {
		last = findResource(ctx, client, resource)
		if errors.Is(last, ErrNotInstalled) {
			return false, last
		}
		return last == nil, nil
	})
	if wait.Interrupted(err) && last != nil {
		return last
	}
	return err
}

func findResource(ctx context.Context, client discovery.DiscoveryInterface, resource schema.GroupVersionResource) error {
	version := resource.GroupVersion().String()
	served, err := discovery.ToServerResourcesInterfaceWithContext(client).ServerResourcesForGroupVersionWithContext(ctx, version)
	if apierrors.IsNotFound(err) {
		return ErrNotInstalled
	}
	if err != nil {
		return fmt.Errorf("ask the API server for %s: %w", version, err)
	}
	if !slices.ContainsFunc(served.APIResources, func(each metav1.APIResource) bool { return each.Name == resource.Resource }) {
		return ErrNotInstalled
	}
	return nil
}

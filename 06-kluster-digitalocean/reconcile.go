package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// observation holds what a reconcile has found. Fields that it could not observe are zero.
type observation struct {
	// cloud sends requests with the Kluster's token.
	cloud       cloud.CloudProvider
	account     string
	tokenSecret *corev1.Secret
	// cluster is the cluster that findCluster has found, even if it isn't this Kluster's own, or nil if there is none.
	cluster *cloud.Cluster
}

// result is what a reconcile reports: the reason and the message of the Ready condition, and how long to wait before
// requeueing. Without an error, the zero result reports nothing: the reconcile has written metadata or a Secret, and
// the event for that write queues the Kluster again.
type result struct {
	reason, message string
	requeueAfter    time.Duration
}

// reconcile takes one step to make a Kluster's cluster match the spec, or to delete it, without waiting until the cloud
// has finished. It returns how long to wait before requeueing the Kluster, or 0 if an event will queue it, or nothing
// is left to do. It is idempotent.
//
//workshop:step 6.6a
func (c *controller) reconcile(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
	kluster, err := c.klusters.Klusters(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.forget(key)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("get Kluster %s: %w", key, err)
	}
	switch {
	case c.isStale(kluster):
		return 0, nil // the event for our own last write is on its way
	case isReleased(kluster):
		return 0, nil // our part of the deletion is done; another finalizer is left
	//workshop:step 6.15c
	case isPaused(kluster):
		return c.report(ctx, kluster, observation{}, paused, nil)
	//workshop:step 6.6b
	case needsFinalizer(kluster):
		return 0, c.addFinalizer(ctx, kluster) // the watch event for this write queues the Kluster again
	}
	//workshop:step 6.13d
	finished, err := c.isFinished(ctx, kluster)
	//workshop:step 6.13d
	if err != nil {
		return 0, err
	}
	//workshop:step 6.13d
	if finished {
		return c.report(ctx, kluster, observation{}, result{}, c.release(ctx, kluster))
	}
	//workshop:until 6.7a return 0, nil
	//workshop:step 6.7a
	observed, err := c.observe(ctx, kluster)
	//workshop:step 6.7a
	var next result
	//workshop:step 6.7a
	if err == nil {
		next, err = c.act(ctx, kluster, observed)
	}
	//workshop:between 6.7a 6.11d return next.requeueAfter, err
	//workshop:step 6.11d
	return c.report(ctx, kluster, observed, next, err)
}

// forget deletes what the operator remembers about a Kluster that is gone.
func (c *controller) forget(key cache.ObjectName) {
	c.staleVersions.Delete(key)
	c.missingSince.Delete(key)
	c.outageSince.Delete(key)
	c.retryDelays.Forget(key)
}

// paused is the result for a Kluster with the annotation that pauses it.
var paused = result{
	reason:  klusterv1alpha1.ReasonPaused,
	message: "nothing is done in the cloud, not even a deletion, until the annotation " + klusterv1alpha1.PausedAnnotation + " is removed",
}

// observe connects to the account of the Kluster's token (see connect), and looks for the Kluster's cluster.
func (c *controller) observe(ctx context.Context, kluster *klusterv1alpha1.Kluster) (observation, error) {
	observed, err := c.connect(ctx, kluster)
	if err != nil {
		return observed, err
	}
	observed.cluster, err = findCluster(ctx, observed.cloud, kluster)
	if err != nil {
		return observed, cloudError(err)
	}
	if observed.cluster != nil {
		c.missingSince.Delete(cache.MetaObjectToName(kluster))
	}
	return observed, nil
}

// findCluster returns the cluster with this Kluster's tag. If the cloud shows none, it returns the cluster with the
// recorded ID, or nil if the cloud doesn't show that either.
//
// The owner tags decide which Kluster owns the cluster. If the only owner tag is this Kluster's, this Kluster owns it
// (IsOwnedBy). If the only one is another Kluster's, the cluster was handed over: the operator leaves it alone, and a
// deletion of this Kluster can finish. With no owner tag, or with several, the operator also leaves the cluster alone,
// but a deletion waits until someone has corrected the tags (notOurs).
//
//workshop:step 6.9a
func findCluster(ctx context.Context, account cloud.CloudProvider, kluster *klusterv1alpha1.Kluster) (*cloud.Cluster, error) {
	var recorded *cloud.Cluster
	if id := externalName(kluster); id != "" {
		var err error
		recorded, err = account.Get(ctx, id)
		switch {
		case cloud.Is(err, cloud.NotFound):
		case err != nil:
			return nil, err
		//workshop:step 6.9b
		case slices.Contains(recorded.Owners, ownerOf(kluster)):
			return recorded, nil
		}
	}
	//workshop:until 6.9b return recorded, nil
	//workshop:step 6.9b
	// The response to a create request can get lost, and with it the ID. But the request contains a tag with the
	// Kluster's UID, so search for the tag.
	tagged, err := account.Find(ctx, ownerOf(kluster))
	//workshop:step 6.9b
	return cmp.Or(tagged, recorded), err
}

// act compares the observation with the spec, and takes the next step to make the cluster match the spec, or to delete
// it.
//
//workshop:step 6.9a
func (c *controller) act(ctx context.Context, kluster *klusterv1alpha1.Kluster, observed observation) (result, error) {
	switch cluster := observed.cluster; {
	//workshop:until 6.13a case kluster.DeletionTimestamp != nil: return result{}, nil
	//workshop:step 6.13a
	case kluster.DeletionTimestamp != nil:
		return c.delete(ctx, kluster, observed)
	case cluster == nil && externalName(kluster) == "":
		return c.create(ctx, kluster, observed)
	//workshop:step 6.9b
	case cluster == nil:
		return result{}, c.lost(kluster)
	//workshop:step 6.9b
	case !cluster.IsOwnedBy(ownerOf(kluster)):
		return result{}, notOurs(kluster, cluster)
	//workshop:step 6.9b
	case kluster.Annotations[klusterv1alpha1.ExternalNameAnnotation] != cluster.ID:
		return result{}, c.recordExternalName(ctx, kluster, cluster.ID)
	//workshop:step 6.10a
	case !hasRun(cluster):
		return c.inProgress(cluster)
	}
	//workshop:until 6.10b return result{}, nil
	//workshop:step 6.10b
	return c.update(ctx, kluster, observed)
}

// create creates the cluster, and records its ID.
//
//workshop:step 6.9a
func (c *controller) create(ctx context.Context, kluster *klusterv1alpha1.Kluster, observed observation) (result, error) {
	//workshop:step 6.9c
	// Record the create intent before the first request. So a later reconcile, perhaps in another replica, knows that
	// the cloud may have a cluster even if the response never arrives. The intent is not a lock: if there is no
	// response, and no cluster has the tag, the operator sends the request again. If the first request did take effect,
	// and the cloud does not show the cluster yet, the second one fails with NameTaken, because names are unique in an
	// account.
	if kluster.Annotations[klusterv1alpha1.CreatePendingAnnotation] == "" {
		return result{}, c.recordCreatePending(ctx, kluster, observed.account)
	}
	//workshop:step 6.12a
	if err := c.checkKubeconfig(ctx, kluster); err != nil {
		return result{}, err // without its kubeconfig, a cluster costs money but can't be used
	}
	//workshop:step 6.9c
	// Don't send a request for a Kluster that has changed, is being deleted, or is gone.
	if err := c.checkFresh(ctx, kluster); err != nil {
		return result{}, err
	}
	cluster, err := observed.cloud.Create(ctx, ownerOf(kluster), cloudSpec(kluster))
	if err != nil {
		return result{}, cloudError(err)
	}
	klog.FromContext(ctx).Info("Created the cluster", "cluster", cluster.ID)
	return result{}, c.recordExternalName(ctx, kluster, cluster.ID)
}

// inProgress returns the result or the error for a cluster whose state is neither running nor degraded.
//
//workshop:step 6.10a
func (c *controller) inProgress(cluster *cloud.Cluster) (result, error) {
	switch cluster.State {
	case cloud.StateFailed:
		return result{}, failed(cluster, c.options.observeInterval)
	case cloud.StateDeleting, cloud.StateDeleted:
		return result{}, blocked(klusterv1alpha1.ReasonLost, "someone else is deleting cluster %s: delete this Kluster too", cluster.ID)
	case cloud.StateUpgrading:
		return result{klusterv1alpha1.ReasonUpdating, "the cloud is upgrading the cluster", c.options.pollInterval}, nil
	}
	return result{klusterv1alpha1.ReasonProvisioning, "the cloud is making the cluster", c.options.pollInterval}, nil
}

// update makes a running cluster match the spec. It upgrades the version only when the node pools match.
//
//workshop:step 6.10b
func (c *controller) update(ctx context.Context, kluster *klusterv1alpha1.Kluster, observed observation) (result, error) {
	cluster := observed.cluster
	//workshop:step 6.12c
	validFor, refreshed, err := c.ensureKubeconfig(ctx, kluster, observed)
	//workshop:step 6.12c
	if refreshed || err != nil {
		return result{}, err // the Secret's event queues the Kluster again
	}
	if err := c.checkFresh(ctx, kluster); err != nil {
		return result{}, err
	}
	changed, err := observed.cloud.UpdatePools(ctx, cluster, cloudSpec(kluster).Pools)
	if err == nil && !changed {
		changed, err = observed.cloud.Upgrade(ctx, cluster, kluster.Spec.Version)
	}
	switch {
	case err != nil:
		return result{}, cloudError(err)
	case cluster.State == cloud.StateDegraded:
		return result{klusterv1alpha1.ReasonDegraded, "the cloud says that the cluster is degraded: " + cluster.Message, c.options.retryInterval}, nil
	case changed || !isComplete(cluster) && !wasReady(kluster):
		return result{klusterv1alpha1.ReasonUpdating, "the cloud is changing node pools or version to match the spec", c.options.pollInterval}, nil
	}
	//workshop:until 6.12c return result{klusterv1alpha1.ReasonRunning, "the cluster matches the spec", c.options.observeInterval}, nil
	//workshop:step 6.12c
	return result{klusterv1alpha1.ReasonRunning, "the cluster matches the spec", min(c.options.observeInterval, validFor)}, nil
}

// lost returns the error for a recorded cluster that the cloud does not show.
func (c *controller) lost(kluster *klusterv1alpha1.Kluster) error {
	id := externalName(kluster)
	if left := c.consistencyWindow(kluster); left > 0 {
		waiting := blocked(klusterv1alpha1.ReasonUnavailable, "the cloud does not show cluster %s yet", id)
		waiting.requeueAfter = min(left, c.options.pollInterval)
		return waiting
	}
	return blocked(klusterv1alpha1.ReasonLost, "the cloud has no cluster %s any more: if it was deleted, delete this Kluster too", id)
}

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// goneMessage is what the conditions say last.
const goneMessage = "the cloud has no cluster of this Kluster any more"

// finalize removes the cluster of a Kluster that is being deleted, and lets go of
// the token and of the Kluster when the cloud says that there is no such cluster: nothing less
// proves that nobody pays for it any more.
func (c *controller) finalize(ctx context.Context, kluster *klusterv1alpha1.Kluster) (time.Duration, error) {
	if !slices.Contains(kluster.Finalizers, klusterv1alpha1.Finalizer) {
		return 0, nil // somebody else's finalizer holds it
	}
	if isIntended(kluster) {
		found := findings{deleting: true}
		after, err := c.removeCluster(ctx, kluster, &found)
		// That the cluster is gone is written down before the token goes, without which nobody could
		// ask the cloud again. The event of that write brings us here again.
		return c.settle(ctx, kluster, found, after, err)
	}
	if err := c.releaseTokens(ctx, kluster, ""); err != nil {
		return 0, err
	}
	return 0, c.removeFinalizer(ctx, kluster)
}

// removeCluster finds out whether the cluster is gone, and returns after how long to look again if it is not.
func (c *controller) removeCluster(ctx context.Context, kluster *klusterv1alpha1.Kluster, found *findings) (time.Duration, error) {
	account, secret, err := c.openAccount(ctx, kluster, found)
	if err != nil {
		return 0, err
	}
	found.leaving = secret.DeletionTimestamp != nil
	found.cluster, err = c.findForRemoval(ctx, account, kluster)
	if cloud.Is(err, cloud.NotFound) {
		found.gone = true
		return 0, nil
	}
	if err != nil {
		return 0, obstacleOf(err)
	}
	if found.cluster == nil {
		left := c.unsettled(kluster)
		found.gone = left <= 0
		return left, nil
	}
	if state := found.cluster.State; state == cloud.StateDeleting || state == cloud.StateDeleted {
		return c.options.pollInterval, nil
	}
	err = account.Delete(ctx, found.cluster.ID)
	if err != nil && !cloud.Is(err, cloud.NotFound) {
		return 0, obstacleOf(err)
	}
	klog.FromContext(ctx).Info("Deleted the cluster", "cluster", found.cluster.ID)
	return c.options.pollInterval, nil
}

// findForRemoval returns nil if no ID is recorded and no cluster has the Kluster's mark.
func (c *controller) findForRemoval(ctx context.Context, account cloud.CloudProvider, kluster *klusterv1alpha1.Kluster) (*cloud.Cluster, error) {
	if id := kluster.Status.KlusterID; id != "" {
		return account.Get(ctx, id)
	}
	return account.Find(ctx, ownerOf(kluster))
}

// unsettled is for how long a cluster that can't be found may still turn up; not positive if there is none.
// The answer to its creation may be lost, and the cloud's list lag behind. Nobody has asked for one since
// the Kluster was deleted, but a creation that hung may have ended after that, of this replica or of one before it.
func (c *controller) unsettled(kluster *klusterv1alpha1.Kluster) time.Duration {
	last := kluster.DeletionTimestamp.Time
	for _, other := range []time.Time{c.begun, c.creations.of(cache.MetaObjectToName(kluster))} {
		if other.After(last) {
			last = other
		}
	}
	return c.options.settleTime - c.options.clock.Since(last)
}

// deletingMessage is what the condition Ready says meanwhile.
func deletingMessage(kluster *klusterv1alpha1.Kluster) string {
	if kluster.Status.KlusterID == "" {
		return "the cloud may still bring up the cluster that was asked for last"
	}
	return fmt.Sprintf("the cloud is removing cluster %s", kluster.Status.KlusterID)
}

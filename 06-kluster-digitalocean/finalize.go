package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// finalize removes the cluster of a Kluster that is being deleted, and lets go of
// the Kluster when the cloud says that there is no such cluster: nothing less
// proves that nobody pays for it any more.
func (c *controller) finalize(ctx context.Context, kluster *klusterv1alpha1.Kluster) (time.Duration, error) {
	if !slices.Contains(kluster.Finalizers, klusterv1alpha1.Finalizer) {
		return 0, nil // somebody else's finalizer holds it
	}
	found := findings{deleting: true}
	gone, after, err := c.removeCluster(ctx, kluster, &found)
	if err != nil || !gone {
		return c.settle(ctx, kluster, found, after, err)
	}
	if err := c.removeFinalizer(ctx, kluster); err != nil {
		return 0, err
	}
	if isIntended(kluster) {
		c.recorder.Eventf(kluster, nil, corev1.EventTypeNormal, eventDeleted, actionSync, "The cloud has no cluster of this Kluster any more")
	}
	return 0, nil
}

// removeCluster returns whether the cluster is gone, and after how long to look again if it is not.
func (c *controller) removeCluster(ctx context.Context, kluster *klusterv1alpha1.Kluster, found *findings) (gone bool, after time.Duration, err error) {
	if !isIntended(kluster) {
		return true, 0, nil // the cloud was never asked for it
	}
	account, err := c.accountOf(ctx, kluster)
	if err != nil {
		return false, 0, err
	}
	found.cluster, err = c.findForRemoval(ctx, account, kluster)
	if cloud.Is(err, cloud.NotFound) {
		return true, 0, nil
	}
	if err != nil {
		return false, 0, obstacleOf(err)
	}
	if found.cluster == nil {
		return c.isSettled(kluster)
	}
	if state := found.cluster.State; state == cloud.StateDeleting || state == cloud.StateDeleted {
		return false, c.options.pollInterval, nil
	}
	err = account.Delete(ctx, found.cluster.ID)
	if err != nil && !cloud.Is(err, cloud.NotFound) {
		return false, 0, obstacleOf(err)
	}
	klog.FromContext(ctx).Info("Deleted the cluster", "cluster", found.cluster.ID)
	return false, c.options.pollInterval, nil
}

// findForRemoval returns nil if no ID is recorded and no cluster has the Kluster's mark.
func (c *controller) findForRemoval(ctx context.Context, account cloud.CloudProvider, kluster *klusterv1alpha1.Kluster) (*cloud.Cluster, error) {
	if id := kluster.Status.KlusterID; id != "" {
		return account.Get(ctx, id)
	}
	return account.Find(ctx, ownerOf(kluster))
}

// isSettled tells whether a cluster that can't be found is one that there isn't.
// The answer to its creation may be lost, and the cloud's list lag behind. Nobody has asked for one since
// the Kluster was deleted, but a creation that hung may have ended after that.
func (c *controller) isSettled(kluster *klusterv1alpha1.Kluster) (gone bool, after time.Duration, err error) {
	last := kluster.DeletionTimestamp.Time
	if created := c.creations.of(cache.MetaObjectToName(kluster)); created.After(last) {
		last = created
	}
	left := c.options.settleTime - c.options.clock.Since(last)
	if left <= 0 {
		return true, 0, nil
	}
	return false, left, nil
}

// deletingMessage is what the condition Ready says meanwhile.
func deletingMessage(kluster *klusterv1alpha1.Kluster) string {
	if kluster.Status.KlusterID == "" {
		return "the cloud may still bring up the cluster that was asked for last"
	}
	return fmt.Sprintf("the cloud is removing cluster %s", kluster.Status.KlusterID)
}

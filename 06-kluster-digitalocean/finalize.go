package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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
	mayExist, err := c.mayHaveCluster(ctx, kluster)
	if err != nil {
		return 0, err
	}
	if mayExist {
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

// mayHaveCluster tells whether the cloud may have a cluster of the Kluster. The status records that before the first
// creation. If the status was lost, the finalizer on the token's Secret still shows it, for that comes before the
// first creation, too.
func (c *controller) mayHaveCluster(ctx context.Context, kluster *klusterv1alpha1.Kluster) (bool, error) {
	if provisioned := meta.FindStatusCondition(kluster.Status.Conditions, klusterv1alpha1.ConditionProvisioned); provisioned != nil {
		return provisioned.Reason != klusterv1alpha1.ReasonDeleted, nil
	}
	held, err := c.heldSecrets(ctx, kluster)
	return len(held) > 0, err
}

// removeCluster finds out whether the cluster is gone, and returns after how long to look again if it is not.
func (c *controller) removeCluster(ctx context.Context, kluster *klusterv1alpha1.Kluster, found *findings) (time.Duration, error) {
	account, secret, err := c.openAccount(ctx, kluster, found)
	if err != nil {
		return 0, err
	}
	found.leaving = secret.DeletionTimestamp != nil
	found.cluster, err = c.findForRemoval(ctx, account, kluster)
	if err != nil && !cloud.Is(err, cloud.NotFound) {
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

// findForRemoval looks for the cluster with the recorded ID or, without an ID, with the Kluster's mark. It returns no
// cluster if there is none.
func (c *controller) findForRemoval(ctx context.Context, account cloud.CloudProvider, kluster *klusterv1alpha1.Kluster) (*cloud.Cluster, error) {
	if id := kluster.Status.KlusterID; id != "" {
		return account.Get(ctx, id)
	}
	return account.Find(ctx, ownerOf(kluster))
}

// unsettled is for how long a cluster that can't be found may still turn up; not positive if there is none.
// The cloud may show what was made just now neither in its list nor by its ID, and the answer to a creation
// may be lost. Nobody has asked for one since the Kluster was deleted, but a creation that hung may have ended after
// that, of this replica or of one before it. A cluster that has run was shown by its ID before.
func (c *controller) unsettled(kluster *klusterv1alpha1.Kluster) time.Duration {
	if kluster.Status.KlusterID != "" && meta.IsStatusConditionTrue(kluster.Status.Conditions, klusterv1alpha1.ConditionProvisioned) {
		return 0
	}
	last := c.begun
	if creation := c.creations.of(cache.MetaObjectToName(kluster)); creation.After(last) {
		last = creation
	}
	if deletion := kluster.DeletionTimestamp; deletion != nil && deletion.After(last) {
		last = deletion.Time
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

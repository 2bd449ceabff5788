package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// delete requests the cluster's deletion. It reports Deleted only when the cloud no longer has a cluster of this
// Kluster: until then, the cluster costs money.
//
//workshop:step 6.13a
func (c *controller) delete(ctx context.Context, kluster *klusterv1alpha1.Kluster, observed observation) (result, error) {
	cluster := observed.cluster
	if cluster == nil || isHandedOver(kluster, cluster) {
		//workshop:step 6.13b
		if left := c.consistencyWindow(kluster); cluster == nil && left > 0 {
			return result{klusterv1alpha1.ReasonDeleting, "the cloud shows no cluster of this Kluster, but its answers are eventually consistent", left}, nil
		}
		return result{reason: klusterv1alpha1.ReasonDeleted, message: deletedMessage}, nil
	}
	if !cluster.IsOwnedBy(ownerOf(kluster)) {
		return result{}, notOurs(kluster, cluster)
	}
	if cluster.State != cloud.StateDeleting && cluster.State != cloud.StateDeleted {
		if err := c.checkFresh(ctx, kluster); err != nil {
			return result{}, err
		}
		err := observed.cloud.Delete(ctx, cluster.ID)
		if err != nil && !cloud.Is(err, cloud.NotFound) {
			return result{}, cloudError(err)
		}
		klog.FromContext(ctx).Info("Requested the deletion of the cluster", "cluster", cluster.ID)
	}
	return result{klusterv1alpha1.ReasonDeleting, fmt.Sprintf("the cloud is removing cluster %s", cluster.ID), c.options.pollInterval}, nil
}

// isFinished reports whether the Kluster is being deleted and needs no more requests to the cloud: its cluster will be
// kept, is gone, or was never requested. If someone has removed the annotations, the finalizer on the token's Secret
// still shows that there may be a cluster.
//
//workshop:step 6.13d
func (c *controller) isFinished(ctx context.Context, kluster *klusterv1alpha1.Kluster) (bool, error) {
	provisioned := meta.FindStatusCondition(kluster.Status.Conditions, klusterv1alpha1.ConditionProvisioned)
	switch {
	case kluster.DeletionTimestamp == nil:
		return false, nil
	case kluster.Spec.DeletionPolicy == klusterv1alpha1.DeletionOrphan:
		return true, nil
	case provisioned != nil && provisioned.Reason == klusterv1alpha1.ReasonDeleted:
		return true, nil
	case mayHaveCluster(kluster):
		return false, nil
	}
	protected, err := c.protectedSecrets(ctx, kluster)
	return len(protected) == 0, err
}

// release completes a deletion. If the policy is Orphan, and mayHaveCluster is true, it emits an event that tells
// people where to find the cluster. It removes the Kluster's own finalizer last: if the operator dies before that, the
// next one continues.
//
//workshop:step 6.13d
func (c *controller) release(ctx context.Context, kluster *klusterv1alpha1.Kluster) error {
	if err := c.unprotectSecrets(ctx, kluster, ""); err != nil {
		return err
	}
	if mayHaveCluster(kluster) && kluster.Spec.DeletionPolicy == klusterv1alpha1.DeletionOrphan {
		left := "may have a cluster"
		if id := externalName(kluster); id != "" {
			left = "keeps cluster " + id
		}
		c.recorder.Eventf(kluster, nil, corev1.EventTypeWarning, klusterv1alpha1.ReasonOrphaned, "Reconcile",
			"account %s %s, with the tag %s: nothing in Kubernetes will delete it", externalAccount(kluster), left, ownerOf(kluster).Tag())
	}
	return c.removeFinalizer(ctx, kluster)
}

// consistencyWindow returns how much longer a missing cluster may take to appear, or a duration of 0 or less if the
// cluster counts as gone. The cloud is eventually consistent: for a moment, a new cluster may be missing both from the
// list and under its ID. A cluster that has run was shown before, so it has no window if its ID is known. The window
// begins when the operator first finds the cluster missing. At that time, the operator isn't waiting for the response
// to a create request for this Kluster, because two workers never process the same Kluster at the same time. After a
// restart, the window begins again.
//
//workshop:step 6.13b
func (c *controller) consistencyWindow(kluster *klusterv1alpha1.Kluster) time.Duration {
	if externalName(kluster) != "" && meta.IsStatusConditionTrue(kluster.Status.Conditions, klusterv1alpha1.ConditionProvisioned) {
		return 0
	}
	since, _ := c.missingSince.LoadOrStore(cache.MetaObjectToName(kluster), c.options.clock.Now())
	return c.options.consistencyWindow - c.options.clock.Since(since.(time.Time))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// provision takes the cluster one step nearer to what the spec asks, and reports.
func (c *controller) provision(ctx context.Context, kluster *klusterv1alpha1.Kluster) (time.Duration, error) {
	found := findings{}
	after, err := c.takeStep(ctx, kluster, &found)
	return c.settle(ctx, kluster, found, after, err)
}

// takeStep fills in what it finds on the way. It returns after how long to look again.
func (c *controller) takeStep(ctx context.Context, kluster *klusterv1alpha1.Kluster, found *findings) (time.Duration, error) {
	account, secret, err := c.openAccount(ctx, kluster, found)
	if err != nil {
		return 0, err
	}
	if err := c.holdToken(ctx, kluster, secret); err != nil {
		return 0, err
	}
	found.tokenSecret, found.leaving = secret.Name, secret.DeletionTimestamp != nil
	if found.cluster, err = c.findOrCreate(ctx, account, kluster); err != nil {
		return 0, err
	}
	if found.cluster == nil {
		return 0, nil // the intention is written down first; its event brings us here again
	}
	switch found.cluster.State {
	case cloud.StateRunning, cloud.StateDegraded:
		return c.update(ctx, account, kluster, found)
	case cloud.StateFailed:
		message := fmt.Sprintf("the cloud could not make the cluster (%q): delete this Kluster and make another", found.cluster.Message)
		return 0, &obstacle{reason: klusterv1alpha1.ReasonFailed, message: message, after: c.options.observeInterval}
	case cloud.StateDeleting, cloud.StateDeleted:
		message := fmt.Sprintf("somebody else deletes cluster %s: delete this Kluster too", found.cluster.ID)
		return 0, &obstacle{reason: klusterv1alpha1.ReasonLost, message: message}
	}
	return c.options.pollInterval, nil
}

// findOrCreate returns the Kluster's cluster. It returns nil if the intention to
// create it is still to be written down.
//
// A creation whose answer is lost may have taken effect. So the cluster carries the Kluster's
// UID from its first moment, and is looked for before any creation. The name, which
// is unique in the account, keeps a list that lags behind from leading to a second one.
func (c *controller) findOrCreate(ctx context.Context, account cloud.CloudProvider, kluster *klusterv1alpha1.Kluster) (*cloud.Cluster, error) {
	if id := kluster.Status.KlusterID; id != "" {
		cluster, err := account.Get(ctx, id)
		if cloud.Is(err, cloud.NotFound) {
			return nil, c.missing(kluster)
		}
		if err != nil {
			return nil, obstacleOf(err)
		}
		return cluster, nil
	}
	cluster, err := account.Find(ctx, ownerOf(kluster))
	if err != nil {
		return nil, obstacleOf(err)
	}
	if cluster != nil || !isIntended(kluster) {
		return cluster, nil
	}
	if err := c.checkKubeconfig(ctx, kluster); err != nil {
		return nil, err // nobody could use the cluster, and it would be paid for
	}
	if err := c.confirm(ctx, kluster); err != nil {
		return nil, err
	}
	cluster, err = account.Create(ctx, ownerOf(kluster), cloudSpec(kluster))
	// A success counts too: a deletion that came meanwhile keeps its ID from being written down.
	c.creations.set(cache.MetaObjectToName(kluster), c.options.clock.Now())
	if err != nil {
		return nil, obstacleOf(err)
	}
	klog.FromContext(ctx).Info("Created the cluster", "cluster", cluster.ID)
	return cluster, nil
}

// missing returns the obstacle if the cloud does not find the cluster of the recorded ID.
func (c *controller) missing(kluster *klusterv1alpha1.Kluster) error {
	id := kluster.Status.KlusterID
	if left := c.unsettled(kluster); left > 0 {
		message := fmt.Sprintf("the cloud does not show cluster %s yet", id)
		return &obstacle{reason: klusterv1alpha1.ReasonUnavailable, message: message, after: min(left, c.options.pollInterval)}
	}
	message := fmt.Sprintf("the cloud has no cluster %s any more: if it was deleted, delete this Kluster too", id)
	return &obstacle{reason: klusterv1alpha1.ReasonLost, message: message}
}

// +kubebuilder:rbac:groups=inspirit941.dev,resources=klusters,verbs=get

// confirm fails if the cache is behind, as it may be after a change of leader. From a stale spec, the operator would
// remove what that spec lacks, or make a cluster for a Kluster that is gone. The event of the newer version queues
// the Kluster again.
func (c *controller) confirm(ctx context.Context, kluster *klusterv1alpha1.Kluster) error {
	live, err := c.clients.kluster.Inspirit941V1alpha1().Klusters(kluster.Namespace).Get(ctx, kluster.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get Kluster %s: %w", klog.KObj(kluster), err)
	}
	if live.ResourceVersion != kluster.ResourceVersion {
		return apierrors.NewConflict(klusterv1alpha1.Resource("klusters"), kluster.Name, errors.New("the cache does not show the last change yet"))
	}
	return nil
}

// update brings a running cluster to what the spec asks.
func (c *controller) update(ctx context.Context, account cloud.CloudProvider, kluster *klusterv1alpha1.Kluster, found *findings) (time.Duration, error) {
	cluster := found.cluster
	until, err := c.ensureKubeconfig(ctx, account, kluster, cluster)
	if err != nil {
		return 0, err
	}
	found.kubeconfigSecret = kubeconfigName(kluster)
	if err := c.confirm(ctx, kluster); err != nil {
		return 0, err
	}
	changed, err := account.UpdatePools(ctx, cluster, cloudSpec(kluster).Pools)
	if err == nil && !changed {
		changed, err = account.Upgrade(ctx, cluster, kluster.Spec.Version)
	}
	if err != nil {
		return 0, obstacleOf(err)
	}
	found.updating = changed || !isComplete(cluster) && !hasBeenReady(kluster)
	if cluster.State == cloud.StateDegraded {
		message := fmt.Sprintf("the cloud says that the cluster is degraded: %s", cluster.Message)
		return 0, &obstacle{reason: klusterv1alpha1.ReasonDegraded, message: message}
	}
	if found.updating {
		return c.options.pollInterval, nil
	}
	return min(c.options.observeInterval, until), nil
}

// isComplete tells whether every machine runs that a pool is to have.
func isComplete(cluster *cloud.Cluster) bool {
	for _, pool := range cluster.Pools {
		if pool.Running < pool.Count {
			return false
		}
	}
	return true
}

// hasBeenReady tells whether the Kluster is Ready, with its present spec. From then on the cloud's state of the cluster
// decides, not the number of machines: they come and go when its autoscaler works, or one is replaced.
func hasBeenReady(kluster *klusterv1alpha1.Kluster) bool {
	ready := meta.FindStatusCondition(kluster.Status.Conditions, klusterv1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == kluster.Generation
}

// isIntended tells whether the cloud may have a cluster of the Kluster. The status says so
// from before the first creation until the cluster is known to be gone.
func isIntended(kluster *klusterv1alpha1.Kluster) bool {
	provisioned := meta.FindStatusCondition(kluster.Status.Conditions, klusterv1alpha1.ConditionProvisioned)
	return provisioned != nil && provisioned.Reason != klusterv1alpha1.ReasonDeleted
}

func ownerOf(kluster *klusterv1alpha1.Kluster) cloud.Owner {
	return cloud.Owner{UID: string(kluster.UID)}
}

// cloudSpec says in the words of clouds what the Kluster asks for.
func cloudSpec(kluster *klusterv1alpha1.Kluster) cloud.Spec {
	spec := cloud.Spec{Name: kluster.Spec.Name, Region: kluster.Spec.Region, Version: kluster.Spec.Version}
	for _, pool := range kluster.Spec.NodePools {
		wanted := cloud.Pool{Name: pool.Name, Size: pool.Size, Count: int(pool.Count), Labels: pool.Labels}
		for _, taint := range pool.Taints {
			wanted.Taints = append(wanted.Taints, cloud.Taint(taint))
		}
		if scale := pool.Autoscale; scale != nil {
			wanted.Autoscale = &cloud.Autoscale{Min: int(scale.MinNodes), Max: int(scale.MaxNodes)}
		}
		spec.Pools = append(spec.Pools, wanted)
	}
	return spec
}

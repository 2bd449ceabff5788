package main

import (
	"slices"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// The functions in this file are pure: their results depend only on a Kluster and a cluster.

// hasRun reports whether the cluster exists and is running, perhaps degraded.
func hasRun(cluster *cloud.Cluster) bool {
	return cluster != nil && (cluster.State == cloud.StateRunning || cluster.State == cloud.StateDegraded)
}

// isComplete reports whether all machines of all pools are running.
//
//workshop:step 6.10b
func isComplete(cluster *cloud.Cluster) bool {
	return !slices.ContainsFunc(cluster.Pools, func(pool cloud.Pool) bool { return pool.Running < pool.Count })
}

// wasProvisioned reports whether the cluster's state shows that the cloud has finished creating it. The states of a
// deletion don't show that.
func wasProvisioned(cluster *cloud.Cluster) bool {
	return hasRun(cluster) || cluster != nil && cluster.State == cloud.StateUpgrading
}

// wasReady reports whether the cluster has matched the Kluster's current spec, and the operator has not had to change
// the cluster since. Then missing machines don't matter, because the autoscaler adds and removes machines, and the
// cloud replaces broken ones. The condition Ready doesn't show this: an outage of the cloud or a pause also changes it.
//
//workshop:step 6.10b
func wasReady(kluster *klusterv1alpha1.Kluster) bool {
	return kluster.Status.ReadyGeneration == kluster.Generation
}

func ownerOf(kluster *klusterv1alpha1.Kluster) cloud.Owner {
	return cloud.Owner{UID: string(kluster.UID)}
}

// isHandedOver reports whether someone has given the cluster to another Kluster, whose tag is now its only owner tag.
//
//workshop:step 6.13a
func isHandedOver(kluster *klusterv1alpha1.Kluster, cluster *cloud.Cluster) bool {
	return len(cluster.Owners) == 1 && cluster.Owners[0] != ownerOf(kluster)
}

// cloudSpec converts the Kluster's spec into the cloud's terms.
func cloudSpec(kluster *klusterv1alpha1.Kluster) cloud.Spec {
	spec := cloud.Spec{Name: kluster.Spec.Name, Origin: kluster.Namespace + "/" + kluster.Name, Region: kluster.Spec.Region, Version: kluster.Spec.Version}
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

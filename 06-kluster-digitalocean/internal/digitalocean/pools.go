package digitalocean

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/digitalocean/godo"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
)

// UpdatePools implements cloud.CloudProvider. It requests new pools before it removes old ones, so that the cluster
// never loses its last pool. It doesn't wait for the new machines.
//
//workshop:step 6.15a
func (a *Account) UpdatePools(ctx context.Context, cluster *cloud.Cluster, pools []cloud.Pool) (changed bool, err error) {
	path := clustersPath + "/" + cluster.ID + "/node_pools"
	for _, wanted := range pools {
		requested, err := a.updatePool(ctx, path, wanted, findPool(cluster.Pools, wanted.Name))
		changed = changed || requested
		if err != nil {
			return changed, fmt.Errorf("update node pool %s of cluster %s: %w", wanted.Name, cluster.ID, err)
		}
	}
	for _, found := range cluster.Pools {
		if findPool(pools, found.Name) != nil {
			continue
		}
		changed = true
		if err := a.do(ctx, http.MethodDelete, path+"/"+found.ID, nil, nil); err != nil && !cloud.Is(err, cloud.NotFound) {
			return changed, fmt.Errorf("delete node pool %s of cluster %s: %w", found.Name, cluster.ID, err)
		}
	}
	return changed, nil
}

// updatePool creates the wanted pool if it is missing, changes it if it differs, and returns whether it had to do
// either. It returns Refused if the found pool's machines don't have the wanted size.
//
//workshop:step 6.15a
func (a *Account) updatePool(ctx context.Context, path string, wanted cloud.Pool, found *cloud.Pool) (changed bool, err error) {
	switch {
	case found == nil:
		return true, a.do(ctx, http.MethodPost, path, newPool(wanted), nil)
	//workshop:step 6.15b
	case found.Size != wanted.Size:
		message := fmt.Sprintf("node pool %q has machines of size %s, which can't be changed: give the new pool another name", found.Name, found.Size)
		return false, &cloud.Error{Problem: cloud.Refused, Message: message}
	//workshop:step 6.15b
	case !isMet(wanted, *found):
		return true, a.do(ctx, http.MethodPut, path+"/"+found.ID, changedPool(wanted, *found), nil)
	}
	return false, nil
}

func findPool(pools []cloud.Pool, name string) *cloud.Pool {
	at := slices.IndexFunc(pools, func(pool cloud.Pool) bool { return pool.Name == name })
	if at < 0 {
		return nil
	}
	return &pools[at]
}

// isMet reports whether the found pool matches the wanted one. With autoscale, the cloud chooses the count.
//
//workshop:step 6.15b
func isMet(wanted, found cloud.Pool) bool {
	sameScale := wanted.Autoscale == nil && found.Autoscale == nil && wanted.Count == found.Count ||
		wanted.Autoscale != nil && found.Autoscale != nil && *wanted.Autoscale == *found.Autoscale
	return sameScale && maps.Equal(wanted.Labels, found.Labels) && slices.Equal(sorted(wanted.Taints), sorted(found.Taints))
}

// sorted returns a copy of the taints in a fixed order. Their order has no meaning, and the API may change it.
func sorted(taints []cloud.Taint) []cloud.Taint {
	return slices.SortedFunc(slices.Values(taints), func(a, b cloud.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Value, b.Value))
	})
}

func newPool(pool cloud.Pool) *godo.KubernetesNodePoolCreateRequest {
	request := &godo.KubernetesNodePoolCreateRequest{
		Name: pool.Name, Size: pool.Size, Count: pool.Count, Labels: pool.Labels, Taints: taintsFor(pool),
	}
	if scale := pool.Autoscale; scale != nil {
		request.AutoScale, request.MinNodes, request.MaxNodes = true, scale.Min, scale.Max
		request.Count = max(pool.Count, scale.Min)
	}
	return request
}

// poolUpdate is like godo's request, but it can remove all labels: godo omits an empty map.
type poolUpdate struct {
	Name      string            `json:"name"`
	Count     int               `json:"count"`
	Labels    map[string]string `json:"labels"`
	Taints    []godo.Taint      `json:"taints"`
	AutoScale bool              `json:"auto_scale"`
	MinNodes  int               `json:"min_nodes,omitempty"`
	MaxNodes  int               `json:"max_nodes,omitempty"`
}

// changedPool returns a request with all fields, because the API doesn't change fields that are missing. With
// autoscale, the count stays as it is, within the limits.
//
//workshop:step 6.15b
func changedPool(wanted, found cloud.Pool) *poolUpdate {
	request := &poolUpdate{Name: wanted.Name, Count: wanted.Count, Labels: wanted.Labels, Taints: taintsFor(wanted)}
	if request.Labels == nil {
		request.Labels = map[string]string{}
	}
	if scale := wanted.Autoscale; scale != nil {
		request.AutoScale, request.MinNodes, request.MaxNodes = true, scale.Min, scale.Max
		request.Count = min(max(found.Count, scale.Min), scale.Max)
	}
	return request
}

func taintsFor(pool cloud.Pool) []godo.Taint {
	taints := []godo.Taint{}
	for _, taint := range pool.Taints {
		taints = append(taints, godo.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
	}
	return taints
}

func foundPool(pool *godo.KubernetesNodePool) cloud.Pool {
	found := cloud.Pool{ID: pool.ID, Name: pool.Name, Size: pool.Size, Count: pool.Count, Labels: pool.Labels}
	for _, taint := range pool.Taints {
		found.Taints = append(found.Taints, cloud.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
	}
	if pool.AutoScale {
		found.Autoscale = &cloud.Autoscale{Min: pool.MinNodes, Max: pool.MaxNodes}
	}
	for _, node := range pool.Nodes {
		if node.Status != nil && node.Status.State == "running" {
			found.Running++
		}
	}
	return found
}

package doks

import (
	"net/http"
	"strings"
)

// Operation names that are used more than once.
const (
	createCluster = "create cluster"
	deleteCluster = "delete cluster"
)

// route is one of the calls that the API offers.
type route struct {
	method string
	// pattern is the path below basePath; a part in braces is a variable.
	pattern string
	name    string
	write   bool
	// run carries the call out while the clusters are locked.
	run func(*exchange) reply
}

const (
	basePath = "/v2/"
	// kubernetes begins every pattern except for accountPattern.
	kubernetes = "kubernetes/"
)

func (e *Emulator) allRoutes() []route {
	const (
		all      = kubernetes + "clusters"
		one      = all + "/{cluster}"
		pools    = one + "/node_pools"
		onePool  = pools + "/{pool}"
		destroy  = one + "/destroy_with_associated_resources"
		get, put = http.MethodGet, http.MethodPut
		post     = http.MethodPost
		remove   = http.MethodDelete
	)
	return []route{
		{get, accountPattern, "get account", false, e.getAccount},
		{get, kubernetes + "options", "list options", false, e.listOptions},
		{get, all, "list clusters", false, e.listClusters},
		{post, all, createCluster, true, e.createCluster},
		{get, one, "get cluster", false, e.getCluster},
		{put, one, "update cluster", true, e.updateCluster},
		{remove, one, deleteCluster, true, e.deleteCluster},
		{get, one + "/kubeconfig", "get kubeconfig", false, e.getKubeconfig},
		{get, one + "/credentials", "get credentials", false, e.getCredentials},
		{get, one + "/user", "get user", false, e.getUser},
		{get, one + "/status_messages", "list status messages", false, e.listMessages},
		{get, one + "/upgrades", "list upgrades", false, e.listUpgrades},
		{post, one + "/upgrade", "upgrade cluster", true, e.upgradeCluster},
		{get, destroy, "list associated resources", false, e.listResources},
		{remove, destroy + "/selective", deleteCluster, true, e.deleteSelective},
		{remove, destroy + "/dangerous", deleteCluster, true, e.deleteDangerous},
		{get, pools, "list node pools", false, e.listPools},
		{post, pools, "create node pool", true, e.createPool},
		{get, onePool, "get node pool", false, e.getPool},
		{put, onePool, "update node pool", true, e.updatePool},
		{remove, onePool, "delete node pool", true, e.deletePool},
		{remove, onePool + "/nodes/{node}", "delete node", true, e.deleteNode},
	}
}

// match returns the route of a request and the IDs in its path, or empty results if there is no such route. A trailing
// slash is ignored: like the real API, the emulator lists the clusters when godo asks for the one with an empty ID.
func (e *Emulator) match(request *http.Request) (found route, ids map[string]string) {
	below, ok := strings.CutPrefix(request.URL.Path, basePath)
	if !ok {
		return route{}, nil
	}
	parts := strings.Split(strings.TrimSuffix(below, "/"), "/")
	for _, candidate := range e.routes {
		if candidate.method != request.Method {
			continue
		}
		if ids, ok := matchParts(strings.Split(candidate.pattern, "/"), parts); ok {
			return candidate, ids
		}
	}
	return route{}, nil
}

func matchParts(pattern, parts []string) (map[string]string, bool) {
	if len(pattern) != len(parts) {
		return nil, false
	}
	ids := map[string]string{}
	for i, part := range pattern {
		name, named := strings.CutPrefix(part, "{")
		if named && parts[i] != "" {
			ids[strings.TrimSuffix(name, "}")] = parts[i]
			continue
		}
		if named || part != parts[i] {
			return nil, false
		}
	}
	return ids, true
}

package digitalocean

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
)

// Kubeconfig implements cloud.CloudProvider. The response doesn't say when the credentials expire, so Kubeconfig
// computes Expires from the requested lifetime.
func (a *Account) Kubeconfig(ctx context.Context, cluster *cloud.Cluster) (cloud.Kubeconfig, error) {
	asked := time.Now()
	content := &bytes.Buffer{}
	path := fmt.Sprintf("%s/%s/kubeconfig?expiry_seconds=%d", clustersPath, cluster.ID, int(credentialsValidity.Seconds()))
	if err := a.do(ctx, http.MethodGet, path, nil, content); err != nil {
		return cloud.Kubeconfig{}, fmt.Errorf("get the kubeconfig of cluster %s: %w", cluster.ID, err)
	}
	return cloud.Kubeconfig{Content: content.Bytes(), Expires: asked.Add(credentialsValidity)}, nil
}

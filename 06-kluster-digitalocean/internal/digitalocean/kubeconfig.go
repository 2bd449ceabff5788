package digitalocean

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/tools/clientcmd"

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
	// A successful response could also be a proxy's page.
	if _, err := clientcmd.RESTConfigFromKubeConfig(content.Bytes()); err != nil {
		return cloud.Kubeconfig{}, fmt.Errorf("get the kubeconfig of cluster %s: %w", cluster.ID, &cloud.Error{Problem: cloud.Unavailable, Message: "the answer holds no kubeconfig"})
	}
	return cloud.Kubeconfig{Content: content.Bytes(), Expires: asked.Add(credentialsValidity)}, nil
}

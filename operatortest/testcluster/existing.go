package testcluster

import (
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

const (
	// ExistingVariable is the environment variable that makes Start use an existing cluster, if its value is true.
	ExistingVariable = "USE_EXISTING_CLUSTER"
	// KubeconfigVariable is the environment variable that names the existing cluster's kubeconfig.
	KubeconfigVariable = "KUBECONFIG"
)

func useExisting() bool { return strings.EqualFold(os.Getenv(ExistingVariable), "true") }

// startExisting uses the cluster that KUBECONFIG names. Unlike envtest, it doesn't
// fall back to the kubeconfig in the home directory: that could point to any
// cluster, and the tests write to it.
func (c *Cluster) startExisting(ctx context.Context) error {
	kubeconfig := os.Getenv(KubeconfigVariable)
	if kubeconfig == "" {
		return fmt.Errorf("%s=true needs %s to name the cluster's kubeconfig", ExistingVariable, KubeconfigVariable)
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: strings.Split(kubeconfig, string(os.PathListSeparator))}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return fmt.Errorf("%s=%s names no kubeconfig: correct the path, or bring up a cluster first", KubeconfigVariable, kubeconfig)
	}
	if err != nil {
		return fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // tests send bursts; the server has limits of its own
	if err := c.connect(config, kubeconfig); err != nil {
		return err
	}
	c.Existing = true
	manifests := c.manifests()
	if err := manifests.InstallShared(ctx, config, c.dir); err != nil {
		return err
	}
	c.installed(manifests)
	return nil
}

package operatortest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

const (
	existingVariable   = "USE_EXISTING_CLUSTER"
	kubeconfigVariable = "KUBECONFIG"
)

func useExisting() bool { return strings.EqualFold(os.Getenv(existingVariable), "true") }

// startExisting uses the cluster that KUBECONFIG names. Unlike envtest it does
// not fall back to the kubeconfig in the home folder: that may be any cluster,
// and the tests write to it.
func (c *Cluster) startExisting(ctx context.Context) error {
	kubeconfig := os.Getenv(kubeconfigVariable)
	if kubeconfig == "" {
		return fmt.Errorf("%s=true needs %s to name the cluster's kubeconfig", existingVariable, kubeconfigVariable)
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: strings.Split(kubeconfig, string(os.PathListSeparator))}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s=%s holds no kubeconfig: bring a cluster up first", kubeconfigVariable, kubeconfig)
	}
	if err != nil {
		return fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // tests send bursts; the server has limits of its own
	if err := c.connect(config, kubeconfig); err != nil {
		return err
	}
	c.shared = true
	return c.install(ctx)
}

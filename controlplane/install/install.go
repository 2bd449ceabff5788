// Package install connects to control planes, and installs CustomResourceDefinitions and webhooks with envtest's code. It
// is separate from package controlplane because that code depends on controller-runtime.
package install

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/controlplane"
)

// Config returns a client configuration for the administrator. It has no rate limit, because the control plane
// doesn't throttle its clients either.
func Config(plane *controlplane.ControlPlane) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", plane.KubeconfigPath())
	if err != nil {
		return nil, fmt.Errorf("read the administrator's kubeconfig: %w", err)
	}
	config.QPS = -1
	return config, nil
}

// CRDs returns a function for Options.Install that installs the CRDs in files and folders, without conversion webhooks. A
// missing path is an error. Use [Manifests] to install webhooks, too.
func CRDs(paths ...string) func(context.Context, *controlplane.ControlPlane) error {
	manifests := &Manifests{CRDs: paths}
	return manifests.Install
}

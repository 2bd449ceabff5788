// Package install connects to control planes, and installs CustomResourceDefinitions with envtest's code. It is separate
// from package controlplane because that code depends on controller-runtime.
package install

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/operator-workshop/controlplane"
)

// Config returns the configuration of a client for the administrator. It has no rate limit, because only the caller uses
// the control plane.
func Config(plane *controlplane.ControlPlane) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", plane.KubeconfigPath())
	if err != nil {
		return nil, fmt.Errorf("read the administrator's kubeconfig: %w", err)
	}
	config.QPS = -1
	return config, nil
}

// CRDs returns a function for Options.Install that installs the CRDs in files and folders. A missing path is an error.
func CRDs(paths ...string) func(context.Context, *controlplane.ControlPlane) error {
	return func(_ context.Context, plane *controlplane.ControlPlane) error {
		config, err := Config(plane)
		if err != nil {
			return err
		}
		if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true}); err != nil {
			return fmt.Errorf("install the CRDs: %w", err)
		}
		return nil
	}
}

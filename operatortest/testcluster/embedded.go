package testcluster

import (
	"context"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/controlplane/install"
)

// startEmbedded runs a control plane for this process alone.
func (c *Cluster) startEmbedded(ctx context.Context) error {
	var err error
	c.plane, err = controlplane.Start(ctx, controlplane.Options{
		Nodes:          c.Nodes,
		Stages:         c.Stages,
		APIServerFlags: c.APIServerFlags,
		Install: func(ctx context.Context, plane *controlplane.ControlPlane) error {
			config, err := install.Config(plane)
			if err != nil {
				return err
			}
			c.dir = plane.Dir()
			if err := c.connect(config, plane.KubeconfigPath()); err != nil {
				return err
			}
			return c.install(ctx)
		},
	})
	return err
}

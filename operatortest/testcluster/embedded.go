package testcluster

import (
	"context"
	_ "embed" // for unpullable.yaml
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/controlplane/install"
)

// UnpullableAnnotation is an annotation of a simulated pod. While its value is "true", the pod's images can't be
// pulled.
const UnpullableAnnotation = "operatortest.example.com/unpullable"

// UnpullableImage is an image that simulated pods can never pull.
const UnpullableImage = "operatortest.example.com/unpullable:1"

//go:embed unpullable.yaml
var unpullable []byte

// startEmbedded starts a control plane, or uses the one that an earlier process has left in the scratch folder.
func (c *Cluster) startEmbedded(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "operatortest-")
	if err != nil {
		return fmt.Errorf("create a folder for the kit's pod rules: %w", err)
	}
	defer os.RemoveAll(dir)
	stage := filepath.Join(dir, "unpullable.yaml")
	if err := os.WriteFile(stage, unpullable, 0o600); err != nil {
		return fmt.Errorf("write the kit's pod rules: %w", err)
	}
	manifests := c.manifests()
	options := controlplane.Options{
		Nodes:          c.Nodes,
		Stages:         append(slices.Clone(c.Stages), stage),
		APIServerFlags: withAdmission(c.APIServerFlags),
		Install:        manifests.Install,
	}
	folder, err := c.scratch(manifests)
	if err != nil {
		return err
	}
	if folder != "" {
		err = c.startShared(ctx, folder, options, manifests)
	} else {
		c.plane, err = controlplane.Start(ctx, options)
	}
	if err != nil {
		return err
	}
	c.dir = c.plane.Dir()
	c.installed(manifests)
	config, err := install.Config(c.plane)
	if err != nil {
		return err
	}
	return c.connect(config, c.plane.KubeconfigPath())
}

// ownersAdmission keeps users from setting an owner reference with blockOwnerDeletion unless they may update the
// owner's finalizers. OpenShift enables it, so an operator that lacks the permission works in most clusters, but not
// there.
const ownersAdmission = "OwnerReferencesPermissionEnforcement"

// withAdmission adds ownersAdmission to the admission plugins that the given flags enable.
func withAdmission(flags map[string]string) map[string]string {
	const name = "enable-admission-plugins"
	flags = maps.Clone(flags)
	if flags == nil {
		flags = map[string]string{}
	}
	if asked := flags[name]; asked != "" {
		flags[name] = asked + "," + ownersAdmission
	} else {
		flags[name] = ownersAdmission
	}
	return flags
}

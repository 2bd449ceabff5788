package testcluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/controlplane/install"
)

// ScratchVariable is the environment variable that names a folder made by [controlplane.Scratch]. Start then uses the
// control plane that an earlier process has left there, if it was started with the Cluster's definitions and options.
// Otherwise, Start removes it and starts a new one. Stop leaves the control plane for the next process. Namespaces that
// earlier processes made in it are still there. A cluster is never shared if it has webhooks, conversions or a
// definition with several versions, because its API server may call the process that has installed them.
const ScratchVariable = "OPERATORTEST_SCRATCH"

// scratch returns the folder that contains control planes to share. It returns "" if there is no such folder, or if the
// API server may have to call this process.
func (c *Cluster) scratch(manifests *install.Manifests) (folder string, err error) {
	folder = os.Getenv(ScratchVariable)
	if folder == "" || c.Converts || len(c.Webhooks) > 0 {
		return "", nil
	}
	if err := manifests.Read(); err != nil {
		return "", err
	}
	for _, definition := range manifests.Definitions {
		if len(definition.Spec.Versions) > 1 {
			return "", nil
		}
	}
	return folder, nil
}

// startShared brings up the control plane for the given options and definitions, in a subfolder of the scratch folder,
// and installs the manifests. Before that, it removes all other control planes from the folder.
func (c *Cluster) startShared(ctx context.Context, folder string, options controlplane.Options, manifests *install.Manifests) error {
	name, err := fingerprint(options, manifests)
	if err != nil {
		return err
	}
	others, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("look for control planes: %w", err)
	}
	for _, other := range others {
		if other.Name() == name {
			continue
		}
		unused, err := controlplane.Open(filepath.Join(folder, other.Name()), controlplane.Options{})
		if err != nil {
			return err
		}
		if err := unused.Remove(ctx); err != nil {
			return fmt.Errorf("remove the control plane of other tests: %w", err)
		}
	}
	options.Temporary = true
	isNew := false
	options.Install = func(ctx context.Context, plane *controlplane.ControlPlane) error {
		isNew = true
		return manifests.Install(ctx, plane)
	}
	plane, err := controlplane.Open(filepath.Join(folder, name), options)
	if err != nil {
		return err
	}
	if err := plane.Up(ctx); err != nil {
		return err
	}
	c.plane, c.shared = plane, true
	if isNew {
		return nil
	}
	return manifests.Install(ctx, plane) // an earlier test may have changed a definition
}

// fingerprint identifies what a control plane is started with. It is short, because it becomes part of the paths of
// etcd's files, and these paths are long anyway.
func fingerprint(options controlplane.Options, manifests *install.Manifests) (string, error) {
	sum := sha256.New()
	encoder := json.NewEncoder(sum)
	for _, part := range []any{options.Nodes, options.APIServerFlags, manifests.Definitions} {
		if err := encoder.Encode(part); err != nil {
			return "", fmt.Errorf("identify the control plane: %w", err)
		}
	}
	for _, path := range options.Stages {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("identify the control plane: %w", err)
		}
		fmt.Fprintf(sum, "%x\n", sha256.Sum256(content))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

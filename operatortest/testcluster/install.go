package testcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/controlplane/install"
)

// removalTimeout bounds how long removeLeftovers may take.
const removalTimeout = 60 * time.Second

// manifests returns what Start installs.
func (c *Cluster) manifests() *install.Manifests {
	return &install.Manifests{CRDs: c.CRDs, Webhooks: c.Webhooks, Converts: c.Converts, Scheme: c.Scheme, OnCreate: c.RemoveOnStop}
}

// installed sets the Cluster's fields Serving and kinds from the installed manifests.
func (c *Cluster) installed(manifests *install.Manifests) {
	c.Serving = manifests.Serving
	for _, definition := range manifests.Definitions {
		if definition.Spec.Scope == apiextensionsv1.NamespaceScoped {
			c.kinds = append(c.kinds, storedKind(definition))
		}
	}
}

// storedKind returns the kind of a definition in the version that is stored in etcd.
func storedKind(definition *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionKind {
	kind := schema.GroupVersionKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			kind.Version = version.Name
		}
	}
	return kind
}

// RemoveOnStop records an object that Stop must remove from an existing cluster. On any other cluster, it does nothing,
// because such a cluster is removed as a whole at the end. Trials may call RemoveOnStop concurrently.
func (c *Cluster) RemoveOnStop(object client.Object) {
	if c.Existing {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.leftovers = append(c.leftovers, object)
	}
}

// removeLeftovers deletes the objects that RemoveOnStop recorded, in reverse order, and waits until each one is gone.
func (c *Cluster) removeLeftovers() error {
	ctx, cancel := context.WithTimeout(context.Background(), removalTimeout)
	defer cancel()
	var errs []error
	for _, object := range slices.Backward(c.leftovers) {
		errs = append(errs, RemoveObject(ctx, c.Admin, object))
	}
	c.leftovers = nil
	return errors.Join(errs...)
}

// RemoveObject deletes an object, and waits until it is gone.
func RemoveObject(ctx context.Context, writer client.Client, object client.Object) error {
	gone := func(ctx context.Context) (bool, error) {
		err := writer.Delete(ctx, object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if err := wait.PollUntilContextCancel(ctx, PollInterval, true, gone); err != nil {
		return fmt.Errorf("remove %s: %w", object.GetName(), err)
	}
	return nil
}

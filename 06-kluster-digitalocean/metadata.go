package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// In the Kluster's metadata, the operator records everything that must not get lost, because tools for backup and
// migration keep metadata, but usually not the status. The status contains copies of the cluster's ID and account, in
// case someone overwrites the Kluster with a manifest that lacks the annotations.

// externalName returns the ID of the Kluster's cluster, or "" if none is recorded. The annotation takes precedence,
// because the operator writes it first.
func externalName(kluster *klusterv1alpha1.Kluster) string {
	return cmp.Or(kluster.Annotations[klusterv1alpha1.ExternalNameAnnotation], kluster.Status.KlusterID)
}

// externalAccount returns the account that the cluster is created in, or "" if none is recorded. The status takes
// precedence, because the author of a Kluster can edit its annotations.
func externalAccount(kluster *klusterv1alpha1.Kluster) string {
	return cmp.Or(kluster.Status.Account, kluster.Annotations[klusterv1alpha1.ExternalAccountAnnotation])
}

// mayHaveCluster reports whether the cloud may have received a request to create the cluster.
//
//workshop:step 6.9c
func mayHaveCluster(kluster *klusterv1alpha1.Kluster) bool {
	return externalName(kluster) != "" || kluster.Annotations[klusterv1alpha1.CreatePendingAnnotation] != ""
}

// isPaused reports whether the operator must do nothing for the Kluster except write its status.
//
//workshop:step 6.15c
func isPaused(kluster *klusterv1alpha1.Kluster) bool {
	value, found := kluster.Annotations[klusterv1alpha1.PausedAnnotation]
	return found && value != "false"
}

// needsFinalizer reports whether the Kluster lacks the finalizer and can still get it: a Kluster that is being deleted
// accepts no new one. Without the finalizer, a deletion would not wait for the operator.
//
//workshop:step 6.6b
func needsFinalizer(kluster *klusterv1alpha1.Kluster) bool {
	return kluster.DeletionTimestamp == nil && !slices.Contains(kluster.Finalizers, klusterv1alpha1.Finalizer)
}

// isReleased reports whether the Kluster is being deleted and lacks the finalizer, so the operator has nothing to do.
//
//workshop:step 6.6a
func isReleased(kluster *klusterv1alpha1.Kluster) bool {
	return kluster.DeletionTimestamp != nil && !slices.Contains(kluster.Finalizers, klusterv1alpha1.Finalizer)
}

// recordCreatePending records the create intent. Because the patch contains the resource version, the API server
// refuses it if the Kluster has changed since it was read.
//
//workshop:step 6.9c
func (c *controller) recordCreatePending(ctx context.Context, kluster *klusterv1alpha1.Kluster, account string) error {
	return c.patchMetadata(ctx, kluster, map[string]any{
		"resourceVersion": kluster.ResourceVersion,
		"annotations": map[string]any{
			klusterv1alpha1.CreatePendingAnnotation:   c.options.clock.Now().UTC().Format(time.RFC3339),
			klusterv1alpha1.ExternalAccountAnnotation: account,
		},
	})
}

// recordExternalName records the cluster's ID, even if the Kluster has changed since it was read: the cluster exists.
//
//workshop:step 6.9a
func (c *controller) recordExternalName(ctx context.Context, kluster *klusterv1alpha1.Kluster, id string) error {
	return c.patchMetadata(ctx, kluster, map[string]any{
		"annotations": map[string]any{
			klusterv1alpha1.ExternalNameAnnotation:  id,
			klusterv1alpha1.CreatePendingAnnotation: nil,
		},
	})
}

// addFinalizer makes a deletion wait for the operator. It runs before the first request to the cloud.
//
//workshop:step 6.6b
func (c *controller) addFinalizer(ctx context.Context, kluster *klusterv1alpha1.Kluster) error {
	return c.patchFinalizers(ctx, kluster, append(slices.Clone(kluster.Finalizers), klusterv1alpha1.Finalizer))
}

//workshop:step 6.13d
func (c *controller) removeFinalizer(ctx context.Context, kluster *klusterv1alpha1.Kluster) error {
	ours := func(finalizer string) bool { return finalizer == klusterv1alpha1.Finalizer }
	return c.patchFinalizers(ctx, kluster, slices.DeleteFunc(slices.Clone(kluster.Finalizers), ours))
}

// patchFinalizers replaces the whole list, so it sends the resource version: the API server then refuses a stale list.
//
//workshop:step 6.6b
func (c *controller) patchFinalizers(ctx context.Context, kluster *klusterv1alpha1.Kluster, finalizers []string) error {
	return c.patchMetadata(ctx, kluster, map[string]any{"resourceVersion": kluster.ResourceVersion, "finalizers": finalizers})
}

// +kubebuilder:rbac:groups=inspirit941.dev,resources=klusters,verbs=patch

// patchMetadata changes the Kluster's metadata. The UID makes the API server refuse the patch if another Kluster has
// since been created under the same name.
//
//workshop:step 6.6b
func (c *controller) patchMetadata(ctx context.Context, kluster *klusterv1alpha1.Kluster, changes map[string]any) error {
	changes["uid"] = kluster.UID
	patch, err := json.Marshal(map[string]any{"metadata": changes})
	if err != nil {
		return fmt.Errorf("make the patch of the metadata: %w", err)
	}
	written, err := c.clients.kluster.Inspirit941V1alpha1().Klusters(kluster.Namespace).
		Patch(ctx, kluster.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: programName})
	if err != nil {
		return fmt.Errorf("patch the metadata of Kluster %s: %w", klog.KObj(kluster), err)
	}
	c.wrote(kluster, written)
	return nil
}

// wrote remembers, in memory only, that the version that was read is stale, if the write has changed the Kluster. If
// another reconcile used that version from the cache, it would call the cloud for nothing, and usually end in a
// conflict. The event for the newer version queues the Kluster again.
func (c *controller) wrote(read, written *klusterv1alpha1.Kluster) {
	if written.ResourceVersion != read.ResourceVersion {
		c.staleVersions.Store(cache.MetaObjectToName(read), read.ResourceVersion)
	}
}

// isStale reports whether this replica's own last write has replaced this version of the Kluster.
func (c *controller) isStale(kluster *klusterv1alpha1.Kluster) bool {
	version, found := c.staleVersions.Load(cache.MetaObjectToName(kluster))
	return found && version == kluster.ResourceVersion
}

// +kubebuilder:rbac:groups=inspirit941.dev,resources=klusters,verbs=get

// checkFresh fails if the cache is stale, as it may be after a change of leader. With a stale Kluster, the operator
// might remove a pool that has just been added to the spec, delete a cluster that someone has just asked to keep, or
// create a cluster for a Kluster that has been deleted or is being deleted. The event for the newer version queues the
// Kluster again.
//
//workshop:step 6.9c
func (c *controller) checkFresh(ctx context.Context, kluster *klusterv1alpha1.Kluster) error {
	live, err := c.clients.kluster.Inspirit941V1alpha1().Klusters(kluster.Namespace).Get(ctx, kluster.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get Kluster %s: %w", klog.KObj(kluster), err)
	}
	if live.ResourceVersion != kluster.ResourceVersion {
		return apierrors.NewConflict(klusterv1alpha1.Resource("klusters"), kluster.Name, errors.New("the cache does not show the last change yet"))
	}
	return nil
}

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

// What must not get lost is in the Kluster's metadata, which backups keep, and moves to another cluster. The status shows
// the same, and helps out if someone replaces the Kluster by a manifest without the annotations.

// externalName is the ID of the Kluster's cluster, "" if it was never recorded.
func externalName(kluster *klusterv1alpha1.Kluster) string {
	return cmp.Or(kluster.Annotations[klusterv1alpha1.ExternalNameAnnotation], kluster.Status.KlusterID)
}

// externalAccount is the account that was asked for the cluster, "" if none was.
func externalAccount(kluster *klusterv1alpha1.Kluster) string {
	return cmp.Or(kluster.Status.Account, kluster.Annotations[klusterv1alpha1.ExternalAccountAnnotation])
}

// mayHaveCluster tells whether the cloud may have been asked for a cluster.
func mayHaveCluster(kluster *klusterv1alpha1.Kluster) bool {
	return externalName(kluster) != "" || kluster.Annotations[klusterv1alpha1.CreatePendingAnnotation] != ""
}

// isPaused tells whether the Kluster must be left alone.
func isPaused(kluster *klusterv1alpha1.Kluster) bool {
	value, found := kluster.Annotations[klusterv1alpha1.PausedAnnotation]
	return found && value != "false"
}

// needsFinalizer tells whether a deletion would not wait for the operator yet.
func needsFinalizer(kluster *klusterv1alpha1.Kluster) bool {
	return kluster.DeletionTimestamp == nil && !slices.Contains(kluster.Finalizers, klusterv1alpha1.Finalizer)
}

// isReleased tells whether the operator has done its part of a deletion.
func isReleased(kluster *klusterv1alpha1.Kluster) bool {
	return kluster.DeletionTimestamp != nil && !slices.Contains(kluster.Finalizers, klusterv1alpha1.Finalizer)
}

// recordCreatePending records the intent to create the cluster. The resource version makes the API server refuse it if the
// Kluster has changed since it was read.
func (c *controller) recordCreatePending(ctx context.Context, kluster *klusterv1alpha1.Kluster, account string) error {
	return c.patchMetadata(ctx, kluster, map[string]any{
		"resourceVersion": kluster.ResourceVersion,
		"annotations": map[string]any{
			klusterv1alpha1.CreatePendingAnnotation:   c.options.clock.Now().UTC().Format(time.RFC3339),
			klusterv1alpha1.ExternalAccountAnnotation: account,
		},
	})
}

// recordExternalName records the cluster's ID, also on a Kluster that has changed since it was read: the cluster exists.
func (c *controller) recordExternalName(ctx context.Context, kluster *klusterv1alpha1.Kluster, id string) error {
	return c.patchMetadata(ctx, kluster, map[string]any{
		"annotations": map[string]any{
			klusterv1alpha1.ExternalNameAnnotation:  id,
			klusterv1alpha1.CreatePendingAnnotation: nil,
		},
	})
}

// addFinalizer makes a deletion wait for the operator. It comes before the first request to the cloud.
func (c *controller) addFinalizer(ctx context.Context, kluster *klusterv1alpha1.Kluster) error {
	return c.patchFinalizers(ctx, kluster, append(slices.Clone(kluster.Finalizers), klusterv1alpha1.Finalizer))
}

func (c *controller) removeFinalizer(ctx context.Context, kluster *klusterv1alpha1.Kluster) error {
	ours := func(finalizer string) bool { return finalizer == klusterv1alpha1.Finalizer }
	return c.patchFinalizers(ctx, kluster, slices.DeleteFunc(slices.Clone(kluster.Finalizers), ours))
}

// patchFinalizers replaces the list as a whole, so the resource version makes the API server refuse a stale one.
func (c *controller) patchFinalizers(ctx context.Context, kluster *klusterv1alpha1.Kluster, finalizers []string) error {
	return c.patchMetadata(ctx, kluster, map[string]any{"resourceVersion": kluster.ResourceVersion, "finalizers": finalizers})
}

// +kubebuilder:rbac:groups=inspirit941.dev,resources=klusters,verbs=patch

// patchMetadata changes the metadata of this Kluster, and of no other that was made under its name.
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

// wrote remembers that a Kluster as it was read is stale, until a restart. As long as the cache shows that version,
// another reconcile would call the cloud in vain and end in a conflict. The event of the newer version queues the
// Kluster again.
func (c *controller) wrote(read, written *klusterv1alpha1.Kluster) {
	if written.ResourceVersion != read.ResourceVersion {
		c.staleVersions.Store(cache.MetaObjectToName(read), read.ResourceVersion)
	}
}

// isStale tells whether the operator itself has replaced this version of the Kluster.
func (c *controller) isStale(kluster *klusterv1alpha1.Kluster) bool {
	version, found := c.staleVersions.Load(cache.MetaObjectToName(kluster))
	return found && version == kluster.ResourceVersion
}

// +kubebuilder:rbac:groups=inspirit941.dev,resources=klusters,verbs=get

// checkFresh fails if the cache is behind, as it may be after a change of leader. From a stale spec, the operator would
// remove what that spec lacks, or make a cluster for a Kluster that is gone. The event of the newer version queues the
// Kluster again.
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

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// Whoever deletes a namespace deletes the token together with the Kluster, and without the token nobody can
// remove the cluster. So each Kluster puts a finalizer on its token's Secret before the first creation, and
// takes it off when the cloud has no cluster of it any more. Each has one of its own: Klusters that
// share a Secret needn't know of each other, and the last one lets it go.

// secretsResource is what the metadata of Secrets is asked for by.
var secretsResource = corev1.SchemeGroupVersion.WithResource("secrets")

// tokenFinalizer is the one that a Kluster puts on its token's Secret.
func tokenFinalizer(kluster *klusterv1alpha1.Kluster) string {
	return klusterv1alpha1.TokenFinalizerPrefix + string(kluster.UID)
}

// holdToken makes a deletion of the Secret wait for the Kluster's. The cloud has taken the token: nobody can
// hold just any Secret by naming it in a Kluster. A Secret named before is let go.
func (c *controller) holdToken(ctx context.Context, kluster *klusterv1alpha1.Kluster, secret *corev1.Secret) error {
	if !slices.Contains(secret.Finalizers, tokenFinalizer(kluster)) {
		if secret.DeletionTimestamp != nil { // the API server allows no new finalizers now
			return tokenMissing("Secret %q is being deleted: create another one, and name that", secret.Name)
		}
		err := c.patchTokenFinalizer(ctx, kluster, secret.ObjectMeta, "finalizers")
		if isRefusal(err) {
			message := fmt.Sprintf("the API server refuses the finalizer on Secret %q", secret.Name)
			return &obstacle{reason: klusterv1alpha1.ReasonSecretRefused, message: message, cause: err}
		}
		if err != nil {
			return err
		}
	}
	if last := kluster.Status.TokenSecret; last != "" && last != secret.Name {
		return c.releaseTokens(ctx, kluster, secret.Name)
	}
	return nil
}

// heldSecrets returns the Secrets with the Kluster's finalizer. It looks at all Secrets of the namespace:
// an operator that died may have put the finalizer on one that the Kluster no longer names. It reads only
// their metadata.
func (c *controller) heldSecrets(ctx context.Context, kluster *klusterv1alpha1.Kluster) ([]metav1.PartialObjectMetadata, error) {
	secrets, err := c.clients.metadata.Resource(secretsResource).Namespace(kluster.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the Secrets of namespace %s: %w", kluster.Namespace, err)
	}
	return slices.DeleteFunc(secrets.Items, func(secret metav1.PartialObjectMetadata) bool {
		return !slices.Contains(secret.Finalizers, tokenFinalizer(kluster))
	}), nil
}

// releaseTokens takes the Kluster's finalizer off every Secret but one.
func (c *controller) releaseTokens(ctx context.Context, kluster *klusterv1alpha1.Kluster, except string) error {
	held, err := c.heldSecrets(ctx, kluster)
	if err != nil {
		return err
	}
	for _, secret := range held {
		if secret.Name == except {
			continue
		}
		err := c.patchTokenFinalizer(ctx, kluster, secret.ObjectMeta, "$deleteFromPrimitiveList/finalizers")
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=patch

// patchTokenFinalizer adds the finalizer or takes it off, as the directive says. A strategic merge patch names
// only what changes: many Klusters may do that to one Secret at a time, without a conflict.
func (c *controller) patchTokenFinalizer(ctx context.Context, kluster *klusterv1alpha1.Kluster, secret metav1.ObjectMeta, directive string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": secret.UID, directive: []string{tokenFinalizer(kluster)},
	}})
	if err != nil {
		return fmt.Errorf("make the patch of the finalizers: %w", err)
	}
	_, err = c.clients.kube.CoreV1().Secrets(secret.Namespace).
		Patch(ctx, secret.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: programName})
	if err != nil {
		return fmt.Errorf("patch the finalizers of Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

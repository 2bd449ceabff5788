package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// connect reads the Kluster's token, and makes a client for the account that the token belongs to. It returns an error
// if the Kluster records a different account. Unless the Kluster is being deleted, connect also protects the token's
// Secret.
//
//workshop:step 6.7a
func (c *controller) connect(ctx context.Context, kluster *klusterv1alpha1.Kluster) (observation, error) {
	token, secret, err := c.readToken(ctx, kluster)
	if err != nil {
		return observation{}, err
	}
	observed := observation{cloud: c.openAccount(token), tokenSecret: secret}
	//workshop:step 6.7b
	if observed.account, err = observed.cloud.Identity(ctx); err != nil {
		//workshop:until 6.8b return observed, err
		//workshop:step 6.8b
		return observed, cloudError(err)
	}
	//workshop:step 6.7b
	// With another account's token, the cloud would not find the cluster, and a deletion would end too early.
	if recorded := externalAccount(kluster); recorded != "" && recorded != observed.account {
		return observed, blockedByToken(klusterv1alpha1.ReasonAnotherAccount,
			"the token belongs to account %s, but the cluster to account %s: use a token of the latter", observed.account, recorded)
	}
	//workshop:step 6.7c
	if kluster.DeletionTimestamp == nil {
		observed.tokenSecret, err = c.protectSecret(ctx, kluster, secret)
	}
	return observed, err
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// readToken returns the Kluster's token and the Secret that holds it. Each reconcile reads the Secret again, so a new
// token takes effect in the next reconcile, and the operator doesn't have to store tokens.
//
//workshop:step 6.7a
func (c *controller) readToken(ctx context.Context, kluster *klusterv1alpha1.Kluster) (string, *corev1.Secret, error) {
	reference := kluster.Spec.TokenSecret
	secret, err := c.clients.kube.CoreV1().Secrets(kluster.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil, blockedByToken(klusterv1alpha1.ReasonTokenMissing,
			"there is no Secret %q in this namespace: create it with --type=%s, and the token under the key %q", reference.Name, klusterv1alpha1.TokenSecretType, reference.Key)
	}
	if err != nil {
		return "", nil, fmt.Errorf("get Secret %s: %w", reference.Name, err)
	}
	// Without this check, the author of a Kluster could make the operator send any password in the namespace to the
	// cloud. A Secret's type can't be changed.
	if secret.Type != klusterv1alpha1.TokenSecretType {
		return "", nil, blockedByToken(klusterv1alpha1.ReasonTokenNotAllowed,
			"Secret %q is of type %q: only one that was made with --type=%s is sent to the cloud", secret.Name, secret.Type, klusterv1alpha1.TokenSecretType)
	}
	// Most files end with a line break. --from-file keeps it, but it is not part of the token.
	token := strings.TrimSpace(string(secret.Data[reference.Key]))
	if token == "" {
		return "", nil, blockedByToken(klusterv1alpha1.ReasonTokenMissing, "Secret %q has no token under the key %q", reference.Name, reference.Key)
	}
	if strings.ContainsFunc(token, func(char rune) bool { return char <= ' ' || char > '~' }) {
		return "", nil, blockedByToken(klusterv1alpha1.ReasonTokenMissing, "the value in Secret %q under the key %q is not a token", reference.Name, reference.Key)
	}
	return token, secret, nil
}

// Deleting a namespace deletes the token together with the Kluster, and without the token the operator can't delete the
// cluster. So the operator adds a finalizer to the token's Secret before it creates a cluster, and removes it when the
// Kluster no longer needs the token. Kubernetes protects persistent volume claims in the same way while they are in
// use. Each Kluster has its own finalizer: Klusters that share a Secret don't have to know about each other, and the
// last one releases the Secret.

// secretsResource is the resource that the metadata client lists.
var secretsResource = corev1.SchemeGroupVersion.WithResource("secrets")

// tokenFinalizer returns the Kluster's own finalizer for its token's Secret.
func tokenFinalizer(kluster *klusterv1alpha1.Kluster) string {
	return klusterv1alpha1.TokenFinalizerPrefix + string(kluster.UID)
}

// protectSecret makes a deletion of the Secret wait for the Kluster, and returns the updated Secret. connect calls it
// after the cloud has accepted the token, so naming a Secret in a Kluster isn't enough to make the Secret undeletable.
// If the status doesn't name this Secret yet, the Kluster may have used another one before, so protectSecret releases
// all others.
//
//workshop:step 6.7c
func (c *controller) protectSecret(ctx context.Context, kluster *klusterv1alpha1.Kluster, secret *corev1.Secret) (*corev1.Secret, error) {
	if !slices.Contains(secret.Finalizers, tokenFinalizer(kluster)) {
		//workshop:step 6.7d
		if secret.DeletionTimestamp != nil { // the API server accepts no new finalizers now
			return secret, blockedByToken(klusterv1alpha1.ReasonTokenMissing, "Secret %q is being deleted: create another one, and name that", secret.Name)
		}
		protected, err := c.patchTokenFinalizer(ctx, kluster, secret.ObjectMeta, "finalizers")
		if err != nil {
			return secret, err
		}
		secret = protected
	}
	//workshop:step 6.13c
	if kluster.Status.TokenSecret != secret.Name {
		return secret, c.unprotectSecrets(ctx, kluster, secret.Name)
	}
	return secret, nil
}

// protectedSecrets returns the Secrets with the Kluster's finalizer. It checks all Secrets in the namespace, because an
// operator that crashed may have added the finalizer to a Secret that the Kluster no longer names. It reads only their
// metadata.
//
//workshop:step 6.13c
func (c *controller) protectedSecrets(ctx context.Context, kluster *klusterv1alpha1.Kluster) ([]metav1.PartialObjectMetadata, error) {
	secrets, err := c.clients.metadata.Resource(secretsResource).Namespace(kluster.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the Secrets of namespace %s: %w", kluster.Namespace, err)
	}
	return slices.DeleteFunc(secrets.Items, func(secret metav1.PartialObjectMetadata) bool {
		return !slices.Contains(secret.Finalizers, tokenFinalizer(kluster))
	}), nil
}

// unprotectSecrets removes the Kluster's finalizer from every Secret except the named one. If no name is given, it
// removes the finalizer from all Secrets.
//
//workshop:step 6.13c
func (c *controller) unprotectSecrets(ctx context.Context, kluster *klusterv1alpha1.Kluster, except string) error {
	protected, err := c.protectedSecrets(ctx, kluster)
	if err != nil {
		return err
	}
	for _, secret := range protected {
		if secret.Name == except {
			continue
		}
		_, err := c.patchTokenFinalizer(ctx, kluster, secret.ObjectMeta, "$deleteFromPrimitiveList/finalizers")
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=patch

// patchTokenFinalizer adds or removes the finalizer, depending on the directive. A strategic merge patch contains only
// the element that changes, so the operator can patch one Secret for many Klusters at the same time without a conflict.
// The UID makes the API server refuse the patch if another Secret has since been created under the same name. A refusal
// is a transient blockedError.
//
//workshop:step 6.7c
func (c *controller) patchTokenFinalizer(ctx context.Context, kluster *klusterv1alpha1.Kluster, secret metav1.ObjectMeta, directive string) (*corev1.Secret, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": secret.UID, directive: []string{tokenFinalizer(kluster)},
	}})
	if err != nil {
		return nil, fmt.Errorf("make the patch of the finalizers: %w", err)
	}
	patched, err := c.clients.kube.CoreV1().Secrets(secret.Namespace).
		Patch(ctx, secret.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: programName})
	if err == nil {
		return patched, nil
	}
	err = fmt.Errorf("patch the finalizers of Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	//workshop:step 6.7d
	if isRefusal(err) {
		message := fmt.Sprintf("the API server refuses a change of the finalizers of Secret %q", secret.Name)
		return nil, &blockedError{reason: klusterv1alpha1.ReasonSecretRefused, message: message, transient: err}
	}
	return nil, err
}

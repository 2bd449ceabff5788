package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// tokenMissing says what the Secret lacks.
func tokenMissing(format string, args ...any) error {
	return &obstacle{reason: klusterv1alpha1.ReasonTokenMissing, message: fmt.Sprintf(format, args...), credentials: true}
}

// tokenNotAllowed is the obstacle of a Secret that is not meant for the cloud. Without this check, the
// author of a Kluster could have any password of the namespace sent there. A Secret's type can't be
// changed.
func tokenNotAllowed(secret *corev1.Secret) error {
	message := fmt.Sprintf("Secret %q is of the type %q: only one that was made with --type=%s is sent to the cloud", secret.Name, secret.Type, klusterv1alpha1.TokenSecretType)
	return &obstacle{reason: klusterv1alpha1.ReasonTokenNotAllowed, message: message, credentials: true}
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// readToken returns the Kluster's token, and the Secret that holds it. It is read
// anew each time, so the next look uses a new one, and none is kept.
func (c *controller) readToken(ctx context.Context, kluster *klusterv1alpha1.Kluster) (string, *corev1.Secret, error) {
	reference := kluster.Spec.TokenSecret
	secret, err := c.clients.kube.CoreV1().Secrets(kluster.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil, tokenMissing("there is no Secret %q in this namespace: create it with --type=%s, and the token under the key %q", reference.Name, klusterv1alpha1.TokenSecretType, reference.Key)
	}
	if err != nil {
		return "", nil, fmt.Errorf("get Secret %s: %w", reference.Name, err)
	}
	if secret.Type != klusterv1alpha1.TokenSecretType {
		return "", nil, tokenNotAllowed(secret)
	}
	// A line break at the end is easily made, and no token has one.
	token := strings.TrimSpace(string(secret.Data[reference.Key]))
	if token == "" {
		return "", nil, tokenMissing("Secret %q has no token under the key %q", reference.Name, reference.Key)
	}
	if strings.ContainsFunc(token, func(char rune) bool { return char <= ' ' || char > '~' }) {
		return "", nil, tokenMissing("Secret %q has something under the key %q that is no token", reference.Name, reference.Key)
	}
	return token, secret, nil
}

// openAccount returns the account that the Kluster's token gives access to, and the
// token's Secret. It is an obstacle if that isn't the account which the Kluster's cluster was asked of: there,
// every cluster of this Kluster is "not found", and a deletion would be over at once.
func (c *controller) openAccount(ctx context.Context, kluster *klusterv1alpha1.Kluster, found *findings) (cloud.CloudProvider, *corev1.Secret, error) {
	token, secret, err := c.readToken(ctx, kluster)
	if err != nil {
		return nil, nil, err
	}
	account := c.connect(token)
	found.account, err = c.identify(ctx, kluster, account, sha256.Sum256([]byte(token)))
	if err != nil {
		return nil, nil, obstacleOf(err)
	}
	if recorded := kluster.Status.Account; recorded != "" && recorded != found.account {
		message := fmt.Sprintf("the token is for account %s, and the cluster was asked of account %s: give a token of that one", found.account, recorded)
		return nil, nil, &obstacle{reason: klusterv1alpha1.ReasonAnotherAccount, message: message, credentials: true}
	}
	return account, secret, nil
}

// identity is whose a token is. A token never changes hands, so its digest need be asked about only once.
type identity struct {
	digest  [sha256.Size]byte
	account string
}

// identify asks the cloud whose the token is, unless it is the last one that was asked about.
func (c *controller) identify(ctx context.Context, kluster *klusterv1alpha1.Kluster, account cloud.CloudProvider, digest [sha256.Size]byte) (string, error) {
	key := cache.MetaObjectToName(kluster)
	if known := c.identities.of(key); known.account != "" && known.digest == digest {
		return known.account, nil
	}
	found, err := account.Identity(ctx)
	if err == nil {
		c.identities.set(key, identity{digest: digest, account: found})
	}
	return found, err
}

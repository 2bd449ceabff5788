package main

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// accountOf is the account that the Kluster's token gives access to. The token is
// read anew each time, so a new one takes effect at once, and none is kept.
func (c *controller) accountOf(ctx context.Context, kluster *klusterv1alpha1.Kluster) (cloud.CloudProvider, error) {
	reference := kluster.Spec.TokenSecret
	missing := func(format string, args ...any) error {
		return &obstacle{reason: klusterv1alpha1.ReasonTokenMissing, message: fmt.Sprintf(format, args...), credentials: true}
	}
	secret, err := c.clients.kube.CoreV1().Secrets(kluster.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, missing("there is no Secret %q in this namespace: create it, with the token under the key %q", reference.Name, reference.Key)
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", reference.Name, err)
	}
	// A line break at the end is easily made, and no token has one.
	token := strings.TrimSpace(string(secret.Data[reference.Key]))
	if token == "" {
		return nil, missing("Secret %q has no token under the key %q", reference.Name, reference.Key)
	}
	if strings.ContainsFunc(token, func(char rune) bool { return char <= ' ' || char > '~' }) {
		return nil, missing("Secret %q has something under the key %q that is no token", reference.Name, reference.Key)
	}
	return c.connect(token), nil
}

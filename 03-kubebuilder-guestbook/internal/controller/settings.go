package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

// digestKey is where a cached ConfigMap has the digest of its content. No real
// ConfigMap has such a key: the API server refuses the space.
const digestKey = "digest of the content"

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch

// getSettings returns the digest of the Guestbook's settings. It returns an
// obstacle if there are none; the event of their arrival queues the Guestbook again.
func (r *GuestbookReconciler) getSettings(ctx context.Context, guestbook *webappv1.Guestbook) (string, *obstacle, error) {
	settings := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: guestbook.Namespace, Name: guestbook.Spec.ConfigMapName}
	err := r.Get(ctx, key, settings)
	if apierrors.IsNotFound(err) {
		return "", &obstacle{
			reason:  webappv1.ReasonConfigMapNotFound,
			message: fmt.Sprintf("ConfigMap %q does not exist: create it, or choose another spec.configMapName", key.Name),
		}, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("get ConfigMap %s: %w", key, err)
	}
	return digestOf(settings), nil, nil
}

// digestOf is the digest of a ConfigMap's content, from the cache or not.
func digestOf(settings *corev1.ConfigMap) string {
	if digest, found := settings.Data[digestKey]; found {
		return digest
	}
	return digest(settings.Data, settings.BinaryData)
}

// keepDigest replaces a ConfigMap's content by its digest on the way into the
// cache, which holds every ConfigMap of the namespaces that are watched: of
// most, nobody here will ever read more than the name. The informer may call it
// again with what it returned.
func keepDigest(object any) (any, error) {
	settings, ok := object.(*corev1.ConfigMap)
	if !ok {
		return object, nil
	}
	settings.Data, settings.BinaryData = map[string]string{digestKey: digestOf(settings)}, nil
	settings.ManagedFields, settings.Annotations, settings.Labels = nil, nil, nil
	return settings, nil
}

// digest returns 32 hexadecimal digits that differ when the parts do.
func digest(parts ...any) string {
	// Encoding maps, strings and the spec can't fail, and sorts the maps' keys.
	content, _ := json.Marshal(parts)
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

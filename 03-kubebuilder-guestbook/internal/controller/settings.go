package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// digestKey is the key under which a cached ConfigMap has the digest of its content. No
// real ConfigMap has this key: the API server refuses keys with spaces.
const digestKey = "digest of the content"

// digestOf returns the digest of a ConfigMap's content, whether or not keepDigest has replaced the content.
//
//workshop:step 3.5b
func digestOf(settings *corev1.ConfigMap) string {
	//workshop:step 3.7a
	if digest, found := settings.Data[digestKey]; found {
		return digest
	}
	return digest(settings.Data, settings.BinaryData)
}

// keepDigest is a cache transform: it replaces a ConfigMap's content with its digest,
// and drops the labels, the annotations and the managed fields. The cache holds every
// ConfigMap of the watched namespaces, whether or not a Guestbook refers to it. The
// informer may pass keepDigest's result to keepDigest again.
//
//workshop:step 3.7a
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
	// json.Marshal can't fail for maps, strings and the spec, and it sorts the keys of maps.
	content, _ := json.Marshal(parts)
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

package controller

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	"example.com/operator-workshop/05-webhook-password/internal/generator"
)

// The annotations that describe a Secret's password, and the entry that holds the fingerprint's key. The operator
// writes them together with the password, so a crash can't separate them.
const (
	// policyAnnotation describes the policy that the password was made for.
	policyAnnotation = "secret.example.com/policy"
	// rotatedAtAnnotation is the time when the password was made, in RFC 3339.
	rotatedAtAnnotation = "secret.example.com/rotated-at"
	// fingerprintAnnotation is the signature over the password and the other two annotations.
	fingerprintAnnotation = "secret.example.com/fingerprint"
	// fingerprintKey names the entry in the Secret's data that holds the key of the fingerprint's HMAC. That key is
	// text, because pods may load all entries of a Secret as environment variables (envFrom).
	fingerprintKey = "fingerprint-key"
)

const (
	// minKeyLength is the minimum length of the fingerprint's key, in bytes. It is the length of a string from rand.Text,
	// which has at least 128 random bits. Secrets made by earlier versions of the operator have a key of 32 random bytes,
	// and keep it until the next password.
	minKeyLength = 26
	// fingerprintLength is how many bytes of the digest the fingerprint contains.
	fingerprintLength = 16
)

// Reasons of the events about a new password.
const (
	eventGenerated     = "Generated"
	eventEdited        = "Edited"
	eventPolicyChanged = "PolicyChanged"
	eventRotated       = "Rotated"
)

// generateReason is why the operator makes a new password, as the event reports it.
type generateReason struct{ eventType, event, message string }

// reasonToGenerate returns why the Secret needs a new password, or nil if it doesn't need one.
//
//workshop:step 5.3b
func reasonToGenerate(secret *corev1.Secret, password *secretv1.Password, now time.Time) *generateReason {
	if secret == nil {
		return &generateReason{corev1.EventTypeNormal, eventGenerated, "there was none"}
	}
	made, intact := signedAt(secret)
	rotation := password.Spec.Rotation
	switch {
	case !intact:
		return &generateReason{corev1.EventTypeWarning, eventEdited, "it had been edited by hand"}
	case secret.Annotations[policyAnnotation] != generator.Describe(password.Spec.Policy):
		return &generateReason{corev1.EventTypeNormal, eventPolicyChanged, "the policy has changed"}
	case rotation != nil && !now.Before(made.Add(rotation.EffectiveAfter())):
		return &generateReason{corev1.EventTypeNormal, eventRotated, fmt.Sprintf("the previous one had reached the rotation age of %s", rotation.EffectiveAfter())}
	}
	return nil
}

// sign puts a password into the Secret, and signs it together with its policy and its time.
//
// The signature, or fingerprint, is an HMAC. Its random key can be in the Secret itself, because anyone who may read
// the key may read the password, too. With a plain hash, anyone who can read the fingerprint could try all short
// passwords.
//
//workshop:step 5.3a
func sign(secret *corev1.Secret, policy secretv1.PasswordPolicy, value string, now time.Time) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[secretv1.PasswordKey] = []byte(value)
	secret.Data[fingerprintKey] = []byte(rand.Text())
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, policyAnnotation, generator.Describe(policy))
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, rotatedAtAnnotation, now.UTC().Format(time.RFC3339))
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, fingerprintAnnotation, fingerprint(secret))
}

// signedAt returns when the password was made, and whether the signature is still valid. If it is not, ignore the time.
//
//workshop:step 5.3a
func signedAt(secret *corev1.Secret) (made time.Time, intact bool) {
	made, err := time.Parse(time.RFC3339, secret.Annotations[rotatedAtAnnotation])
	if err != nil || len(secret.Data[fingerprintKey]) < minKeyLength {
		return time.Time{}, false
	}
	return made, hmac.Equal([]byte(fingerprint(secret)), []byte(secret.Annotations[fingerprintAnnotation]))
}

// fingerprint computes the signature over the Secret's password, policy and time.
//
//workshop:step 5.3a
func fingerprint(secret *corev1.Secret) string {
	digest := hmac.New(sha256.New, secret.Data[fingerprintKey])
	// The policy's description and the time contain no zero byte, so different contents never produce the same input.
	fmt.Fprintf(digest, "%s\x00%s\x00", secret.Annotations[policyAnnotation], secret.Annotations[rotatedAtAnnotation])
	digest.Write(secret.Data[secretv1.PasswordKey])
	return hex.EncodeToString(digest.Sum(nil)[:fingerprintLength])
}

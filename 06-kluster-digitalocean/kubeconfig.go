package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

const (
	// managedByLabel marks the operator's Secrets.
	managedByLabel = "app.kubernetes.io/managed-by"
	// kubeconfigKey is the key of the kubeconfig in the Secret's data.
	kubeconfigKey = "kubeconfig"
	// refreshAnnotation is the time, in RFC 3339, when the credentials must be replaced: some time before they expire.
	refreshAnnotation = "inspirit941.dev/refresh-at"
	// digestAnnotation is the checksum of the fetched kubeconfig: if the content doesn't match it, someone has edited one
	// of the two.
	digestAnnotation = "inspirit941.dev/kubeconfig-sha256"
)

// klusterKind is the kind in owner references to Klusters.
var klusterKind = klusterv1alpha1.SchemeGroupVersion.WithKind("Kluster")

func kubeconfigName(kluster *klusterv1alpha1.Kluster) string { return kluster.Name + "-kubeconfig" }

// +kubebuilder:rbac:groups="",resources=secrets,verbs=create;patch

// ensureKubeconfig keeps valid credentials for the cluster in the kubeconfig's Secret. It returns the time until they
// must be replaced. If it has requested new ones, it returns 0 and true.
//
//workshop:step 6.12c
func (c *controller) ensureKubeconfig(ctx context.Context, kluster *klusterv1alpha1.Kluster, observed observation) (validFor time.Duration, refreshed bool, err error) {
	secret, err := c.findKubeconfig(ctx, kluster)
	if err != nil {
		return 0, false, err
	}
	if validFor, valid := validity(secret, c.options.clock.Now()); valid {
		return validFor, false, c.repairKubeconfig(ctx, secret)
	}
	// A kubeconfig contains administrator credentials, which can't be revoked. Request it only if it can be stored.
	if err := c.tryKubeconfig(ctx, kluster, secret); err != nil {
		return 0, false, err
	}
	kubeconfig, err := observed.cloud.Kubeconfig(ctx, observed.cluster)
	if err != nil {
		return 0, false, cloudError(err)
	}
	return 0, true, c.writeKubeconfig(ctx, secret, newKubeconfigSecret(kluster, kubeconfig, c.options.clock.Now()))
}

// checkKubeconfig fails if the Secret can't be written, for example because its name is taken, or because a quota or a
// policy forbids it.
func (c *controller) checkKubeconfig(ctx context.Context, kluster *klusterv1alpha1.Kluster) error {
	secret, err := c.findKubeconfig(ctx, kluster)
	if err != nil {
		return err
	}
	return c.tryKubeconfig(ctx, kluster, secret)
}

// tryKubeconfig tests with a dry run whether the Secret can be written: the API server runs all its checks, but stores
// nothing.
//
//workshop:step 6.12b
func (c *controller) tryKubeconfig(ctx context.Context, kluster *klusterv1alpha1.Kluster, found *corev1.Secret) error {
	trial := newKubeconfigSecret(kluster, cloud.Kubeconfig{Content: []byte("none, only tried")}, c.options.clock.Now())
	return c.writeKubeconfig(ctx, found, trial, metav1.DryRunAll)
}

// writeKubeconfig creates the Secret, or applies our fields to the existing one.
//
// Stages 2 to 5 compute a patch from the differences. Here, the digest, the label and the refresh time already show
// whether to write, so server-side apply is less code: it sends our fields, and the API server merges them with
// everyone else's. Force takes back our fields that someone else has set. If no Secret was found, an apply could adopt
// one that someone has just created under this name; a create fails instead.
//
//workshop:step 6.12b
func (c *controller) writeKubeconfig(ctx context.Context, found, wanted *corev1.Secret, dryRun ...string) error {
	secrets := c.clients.kube.CoreV1().Secrets(wanted.Namespace)
	var err error
	if found == nil {
		_, err = secrets.Create(ctx, wanted, metav1.CreateOptions{FieldManager: programName, DryRun: dryRun})
	} else {
		_, err = secrets.Apply(ctx, ownedFields(found, wanted), metav1.ApplyOptions{FieldManager: programName, Force: true, DryRun: dryRun})
	}
	return orRefusal(wanted, err)
}

// findKubeconfig returns the Secret with the kubeconfig's name, or nil if there is none. It returns an error if this
// Kluster doesn't control the Secret. The cache contains only Secrets with our label, so if a Secret is missing there,
// findKubeconfig asks the API server.
//
//workshop:step 6.12a
func (c *controller) findKubeconfig(ctx context.Context, kluster *klusterv1alpha1.Kluster) (*corev1.Secret, error) {
	name := kubeconfigName(kluster)
	secret, err := c.secrets.Secrets(kluster.Namespace).Get(name)
	if apierrors.IsNotFound(err) {
		secret, err = c.clients.kube.CoreV1().Secrets(kluster.Namespace).Get(ctx, name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", name, err)
	}
	if owner := controllingKluster(secret); owner == nil || owner.UID != kluster.UID {
		return nil, blocked(klusterv1alpha1.ReasonSecretTaken, "Secret %q exists and is not managed by this Kluster: delete it", name)
	}
	return secret, nil
}

// repairKubeconfig restores the operator's label.
func (c *controller) repairKubeconfig(ctx context.Context, secret *corev1.Secret) error {
	if secret.Labels[managedByLabel] == programName {
		return nil
	}
	return c.writeKubeconfig(ctx, secret, secret)
}

// validity returns the time until the Secret's credentials must be replaced, and whether they are valid: they must
// exist, be unedited, and not be due for replacement yet.
//
//workshop:step 6.12c
func validity(secret *corev1.Secret, now time.Time) (time.Duration, bool) {
	if secret == nil || secret.Annotations[digestAnnotation] != digest(secret.Data[kubeconfigKey]) {
		return 0, false
	}
	refresh, err := time.Parse(time.RFC3339, secret.Annotations[refreshAnnotation])
	return refresh.Sub(now), err == nil && now.Before(refresh)
}

// newKubeconfigSecret returns the Secret that holds the credentials. They are replaced after two thirds of their
// lifetime.
func newKubeconfigSecret(kluster *klusterv1alpha1.Kluster, kubeconfig cloud.Kubeconfig, now time.Time) *corev1.Secret {
	refresh := now.Add(kubeconfig.Expires.Sub(now) / 3 * 2)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: kluster.Namespace,
			Name:      kubeconfigName(kluster),
			Labels:    map[string]string{managedByLabel: programName},
			Annotations: map[string]string{
				refreshAnnotation: refresh.UTC().Format(time.RFC3339),
				digestAnnotation:  digest(kubeconfig.Content),
			},
			OwnerReferences: []metav1.OwnerReference{controllerReference(kluster)},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{kubeconfigKey: kubeconfig.Content},
	}
}

// controllerReference returns the owner reference that makes the Kluster the Secret's controller. It doesn't set
// blockOwnerDeletion, because that requires permission to change the owner's finalizers in some clusters, such as those
// of OpenShift.
func controllerReference(kluster *klusterv1alpha1.Kluster) metav1.OwnerReference {
	reference := *metav1.NewControllerRef(kluster, klusterKind)
	reference.BlockOwnerDeletion = nil
	return reference
}

// ownedFields returns the apply configuration that sets our fields in the Secret found to their values in the Secret
// wanted. Each apply must contain all of our fields: the API server removes those that we applied before and now leave
// out. The resource version makes the API server refuse an apply that is based on a stale copy. Without the UID, the
// API server would create a Secret without an owner if the existing one were deleted in the meantime.
//
//workshop:step 6.12b
func ownedFields(found, wanted *corev1.Secret) *applycorev1.SecretApplyConfiguration {
	return applycorev1.Secret(found.Name, found.Namespace).
		WithUID(found.UID).
		WithResourceVersion(found.ResourceVersion).
		WithLabels(map[string]string{managedByLabel: programName}).
		WithAnnotations(map[string]string{
			refreshAnnotation: wanted.Annotations[refreshAnnotation],
			digestAnnotation:  wanted.Annotations[digestAnnotation],
		}).
		WithData(map[string][]byte{kubeconfigKey: wanted.Data[kubeconfigKey]})
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// orRefusal returns nil if there is no error, a blockedError if the API server refuses the Secret, and otherwise the
// error, with the name of the Secret.
func orRefusal(secret *corev1.Secret, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("write Secret %s: %w", klog.KObj(secret), err)
	if isRefusal(err) {
		return &blockedError{reason: klusterv1alpha1.ReasonSecretRefused, message: "the API server refuses the Secret of the kubeconfig", transient: err}
	}
	return err
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

const (
	// managedByLabel marks the operator's Secrets.
	managedByLabel = "app.kubernetes.io/managed-by"
	// kubeconfigKey is the key in the Secret's data.
	kubeconfigKey = "kubeconfig"
	// refreshAnnotation is when to replace the credentials, in RFC 3339: some time before they end.
	refreshAnnotation = "inspirit941.dev/refresh-at"
	// digestAnnotation tells a kubeconfig that was edited from one that was fetched.
	digestAnnotation = "inspirit941.dev/kubeconfig-sha256"
)

// klusterKind is what owner references to Klusters hold.
var klusterKind = klusterv1alpha1.SchemeGroupVersion.WithKind("Kluster")

// kubeconfigName is the Secret that holds a Kluster's kubeconfig.
func kubeconfigName(kluster *klusterv1alpha1.Kluster) string { return kluster.Name + "-kubeconfig" }

// +kubebuilder:rbac:groups="",resources=secrets,verbs=create;update

// ensureKubeconfig keeps valid credentials for the cluster in the Kluster's Secret. It returns for how long they need no
// look, and whether it has just written new ones.
func (c *controller) ensureKubeconfig(ctx context.Context, kluster *klusterv1alpha1.Kluster, observed observation) (validFor time.Duration, refreshed bool, err error) {
	secret, err := c.findKubeconfig(ctx, kluster)
	if err != nil {
		return 0, false, err
	}
	if validFor, valid := validity(secret, c.options.clock.Now()); valid {
		return validFor, false, c.repairKubeconfig(ctx, kluster, secret)
	}
	// These credentials are an administrator's and can't be taken back: ask for them only if they can be stored.
	if err := c.tryKubeconfig(ctx, kluster, secret); err != nil {
		return 0, false, err
	}
	kubeconfig, err := observed.cloud.Kubeconfig(ctx, observed.cluster)
	if err != nil {
		return 0, false, cloudError(err)
	}
	return 0, true, c.writeKubeconfig(ctx, secret, newKubeconfigSecret(kluster, kubeconfig, c.options.clock.Now()))
}

// checkKubeconfig fails if the Secret could not be written: its name is taken, or a quota or a policy keeps it out.
func (c *controller) checkKubeconfig(ctx context.Context, kluster *klusterv1alpha1.Kluster) error {
	secret, err := c.findKubeconfig(ctx, kluster)
	if err != nil {
		return err
	}
	return c.tryKubeconfig(ctx, kluster, secret)
}

// tryKubeconfig has the API server do everything with the Secret but store it.
func (c *controller) tryKubeconfig(ctx context.Context, kluster *klusterv1alpha1.Kluster, found *corev1.Secret) error {
	trial := newKubeconfigSecret(kluster, cloud.Kubeconfig{Content: []byte("none, only tried")}, c.options.clock.Now())
	return c.writeKubeconfig(ctx, found, trial, metav1.DryRunAll)
}

// writeKubeconfig creates the Secret, or changes the one that was found.
func (c *controller) writeKubeconfig(ctx context.Context, found, wanted *corev1.Secret, dryRun ...string) error {
	secrets := c.clients.kube.CoreV1().Secrets(wanted.Namespace)
	var err error
	if found == nil {
		_, err = secrets.Create(ctx, wanted, metav1.CreateOptions{FieldManager: programName, DryRun: dryRun})
	} else {
		_, err = secrets.Update(ctx, merged(found, wanted), metav1.UpdateOptions{FieldManager: programName, DryRun: dryRun})
	}
	return orRefusal(wanted, err)
}

// findKubeconfig returns the Kluster's Secret, nil if there is none. One that this
// Kluster does not control is an error; the cache does not show it, so what is missing there is looked up.
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

// repairKubeconfig puts the operator's label back.
func (c *controller) repairKubeconfig(ctx context.Context, kluster *klusterv1alpha1.Kluster, secret *corev1.Secret) error {
	repaired := secret.DeepCopy()
	metav1.SetMetaDataLabel(&repaired.ObjectMeta, managedByLabel, programName)
	if equality.Semantic.DeepEqual(secret, repaired) {
		return nil
	}
	_, err := c.clients.kube.CoreV1().Secrets(kluster.Namespace).Update(ctx, repaired, metav1.UpdateOptions{FieldManager: programName})
	return orRefusal(repaired, err)
}

// validity tells how long the Secret's credentials need no look, and whether they
// are there, as they were fetched, and need not be replaced yet.
func validity(secret *corev1.Secret, now time.Time) (time.Duration, bool) {
	if secret == nil || secret.Annotations[digestAnnotation] != digest(secret.Data[kubeconfigKey]) {
		return 0, false
	}
	refresh, err := time.Parse(time.RFC3339, secret.Annotations[refreshAnnotation])
	return refresh.Sub(now), err == nil && now.Before(refresh)
}

// newKubeconfigSecret holds the credentials, which are replaced when two thirds of their time are over.
func newKubeconfigSecret(kluster *klusterv1alpha1.Kluster, kubeconfig cloud.Kubeconfig, now time.Time) *corev1.Secret {
	refresh := now.Add(kubeconfig.Expires.Sub(now) * 2 / 3)
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

// controllerReference makes the Kluster the Secret's owner. It doesn't block the owner's deletion: to have
// that, some clusters, such as OpenShift, ask for the right to change the owner's finalizers.
func controllerReference(kluster *klusterv1alpha1.Kluster) metav1.OwnerReference {
	reference := *metav1.NewControllerRef(kluster, klusterKind)
	reference.BlockOwnerDeletion = nil
	return reference
}

// merged is the Secret found with what is wanted. What others have added stays. Its
// resource version makes the API server refuse the update of a stale copy.
func merged(found, wanted *corev1.Secret) *corev1.Secret {
	changed := found.DeepCopy()
	for name, value := range wanted.Labels {
		metav1.SetMetaDataLabel(&changed.ObjectMeta, name, value)
	}
	for name, value := range wanted.Annotations {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, name, value)
	}
	if changed.Data == nil {
		changed.Data = map[string][]byte{}
	}
	changed.Data[kubeconfigKey] = wanted.Data[kubeconfigKey]
	return changed
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// orRefusal is nil for success, and a blockedError if the API server refuses the Secret.
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

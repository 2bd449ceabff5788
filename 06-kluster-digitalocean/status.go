package main

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// +kubebuilder:rbac:groups=inspirit941.dev,resources=klusters/status,verbs=update

// findings are what a sync has found.
type findings struct {
	// cluster is nil if it was not found, or could not be looked for.
	cluster *cloud.Cluster
	// updating tells that a running cluster is not yet as the spec asks.
	updating bool
	// kubeconfigSecret is the Secret that holds valid credentials, "" if none does.
	kubeconfigSecret string
	// deleting tells that the Kluster is being deleted, and gone that the cloud has no cluster of it any more.
	deleting, gone bool
	// account is whose the token is, "" if that is not known.
	account string
	// tokenSecret is the Secret that the Kluster holds, "" if it was not looked at; leaving tells that it is being deleted.
	tokenSecret string
	leaving     bool
	// obstacle is nil if nothing stands in the way.
	obstacle *obstacle
}

// newStatus returns the status that the findings make. It begins with a copy of the present
// one: what could not be looked at stays as it was, above all the cluster's ID.
func newStatus(kluster *klusterv1alpha1.Kluster, found findings) *klusterv1alpha1.KlusterStatus {
	status := kluster.Status.DeepCopy()
	status.ObservedGeneration = kluster.Generation
	if found.kubeconfigSecret != "" {
		status.KubeconfigSecret = found.kubeconfigSecret
	}
	if cluster := found.cluster; cluster != nil {
		status.KlusterID = cmp.Or(status.KlusterID, cluster.ID) // recorded once
		status.Progress = string(cluster.State)
		status.Endpoint = cluster.Endpoint
		status.Version = cluster.Version
		status.NodePools = poolStatus(cluster.Pools)
	}
	conditions := []metav1.Condition{found.credentials(kluster), found.ready(kluster)}
	if isIntended(kluster) || found.obstacle == nil { // nobody asks the cloud before this condition is written
		conditions = append(conditions, found.provisioned(kluster))
		status.Account = cmp.Or(status.Account, found.account) // recorded once, and before the cluster is asked for
		status.TokenSecret = cmp.Or(found.tokenSecret, status.TokenSecret)
	}
	for _, condition := range conditions {
		condition.ObservedGeneration = kluster.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

func poolStatus(pools []cloud.Pool) []klusterv1alpha1.NodePoolStatus {
	var status []klusterv1alpha1.NodePoolStatus
	for _, pool := range pools {
		status = append(status, klusterv1alpha1.NodePoolStatus{
			Name: pool.Name, ID: pool.ID, Size: pool.Size, Count: int32(pool.Count), Running: int32(pool.Running),
		})
	}
	return status
}

func (f findings) credentials(kluster *klusterv1alpha1.Kluster) metav1.Condition {
	if f.obstacle != nil && f.obstacle.credentials {
		return newCondition(klusterv1alpha1.ConditionCredentialsReady, metav1.ConditionFalse, f.obstacle.reason, f.obstacle.message)
	}
	if f.cluster == nil && f.obstacle != nil && f.obstacle.reason == klusterv1alpha1.ReasonUnavailable {
		return newCondition(klusterv1alpha1.ConditionCredentialsReady, metav1.ConditionUnknown, f.obstacle.reason, "the cloud has not been reached")
	}
	message := fmt.Sprintf("the cloud accepts the token under the key %q of Secret %q", kluster.Spec.TokenSecret.Key, kluster.Spec.TokenSecret.Name)
	if f.leaving {
		message += ", which is being deleted, and goes when no Kluster needs it any more"
	}
	return newCondition(klusterv1alpha1.ConditionCredentialsReady, metav1.ConditionTrue, klusterv1alpha1.ReasonTokenAccepted, message)
}

// provisioned stays True until the cluster is removed: it says that the cluster has run, not that it does.
func (f findings) provisioned(kluster *klusterv1alpha1.Kluster) metav1.Condition {
	if f.gone {
		return newCondition(klusterv1alpha1.ConditionProvisioned, metav1.ConditionFalse, klusterv1alpha1.ReasonDeleted, goneMessage)
	}
	if last := meta.FindStatusCondition(kluster.Status.Conditions, klusterv1alpha1.ConditionProvisioned); last != nil && last.Status == metav1.ConditionTrue {
		return newCondition(last.Type, last.Status, last.Reason, last.Message)
	}
	if f.cluster != nil && (f.cluster.State == cloud.StateRunning || f.cluster.State == cloud.StateDegraded) {
		return newCondition(klusterv1alpha1.ConditionProvisioned, metav1.ConditionTrue, klusterv1alpha1.ReasonRunning, "the cluster has been made")
	}
	return newCondition(klusterv1alpha1.ConditionProvisioned, metav1.ConditionFalse, klusterv1alpha1.ReasonProvisioning, "the cluster is being made")
}

func (f findings) ready(kluster *klusterv1alpha1.Kluster) metav1.Condition {
	reason, message := klusterv1alpha1.ReasonProvisioning, "the cloud is making the cluster"
	switch {
	case f.obstacle != nil:
		reason, message = f.obstacle.reason, f.obstacle.message
	case f.gone:
		reason, message = klusterv1alpha1.ReasonDeleted, goneMessage
	case f.deleting:
		reason, message = klusterv1alpha1.ReasonDeleting, deletingMessage(kluster)
	case f.updating:
		reason, message = klusterv1alpha1.ReasonUpdating, "the cluster is being brought to what the spec asks"
	case f.kubeconfigSecret != "":
		return newCondition(klusterv1alpha1.ConditionReady, metav1.ConditionTrue, klusterv1alpha1.ReasonRunning, "the cluster is as the spec asks")
	case f.cluster != nil && f.cluster.State == cloud.StateUpgrading:
		reason, message = klusterv1alpha1.ReasonUpdating, "the cloud is upgrading the cluster"
	}
	return newCondition(klusterv1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
}

func newCondition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// updateStatus writes the status if it differs from the one that the Kluster has,
// and announces what it changes. The resource version, which the copy has, makes the API
// server refuse a status that was computed from a Kluster which has changed since.
func (c *controller) updateStatus(ctx context.Context, kluster *klusterv1alpha1.Kluster, found findings) error {
	status := newStatus(kluster, found)
	if equality.Semantic.DeepEqual(&kluster.Status, status) {
		return nil
	}
	changed := kluster.DeepCopy()
	changed.Status = *status
	written, err := c.clients.kluster.Inspirit941V1alpha1().Klusters(kluster.Namespace).
		UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: programName})
	if err != nil {
		return fmt.Errorf("update the status of Kluster %s: %w", klog.KObj(kluster), err)
	}
	if written.ResourceVersion != kluster.ResourceVersion {
		c.replaced.set(cache.MetaObjectToName(kluster), kluster.ResourceVersion)
	}
	c.announce(kluster, meta.FindStatusCondition(status.Conditions, klusterv1alpha1.ConditionReady))
	return nil
}

// announce emits an event if the condition has come to say something else.
// Resyncs and restarts change nothing, and so are silent.
func (c *controller) announce(kluster *klusterv1alpha1.Kluster, ready *metav1.Condition) {
	before := meta.FindStatusCondition(kluster.Status.Conditions, klusterv1alpha1.ConditionReady)
	if before != nil && before.Status == ready.Status && before.Reason == ready.Reason {
		return
	}
	eventType := corev1.EventTypeWarning
	switch ready.Reason {
	case klusterv1alpha1.ReasonRunning, klusterv1alpha1.ReasonProvisioning, klusterv1alpha1.ReasonUpdating,
		klusterv1alpha1.ReasonDeleting, klusterv1alpha1.ReasonDeleted:
		eventType = corev1.EventTypeNormal
	}
	c.recorder.Eventf(kluster, nil, eventType, ready.Reason, "Sync", "%s", ready.Message)
}

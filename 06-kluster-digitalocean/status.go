package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// deletedMessage is the message of the conditions Ready and Provisioned with the reason Deleted.
const deletedMessage = "the cloud has no cluster of this Kluster any more"

// report writes the status if there is something to report, and returns when to requeue the Kluster: after a duration,
// or with backoff if it returns an error. If the duration is 0 and there is no error, an event will queue the Kluster
// again.
//
//workshop:step 6.11d
func (c *controller) report(ctx context.Context, kluster *klusterv1alpha1.Kluster, observed observation, next result, err error) (time.Duration, error) {
	blocking, isBlocked := errors.AsType[*blockedError](err)
	outage := isBlocked && blocking.isOutage()
	switch {
	case outage && c.outageTime(kluster) < c.options.outageThreshold:
		return 0, blocking.transient // keep the last observation
	case isBlocked:
		next = result{blocking.reason, blocking.message, c.retryAfter(kluster, blocking)}
	case err != nil:
		return 0, err
	case next == result{}:
		return 0, nil
	}
	if !outage {
		c.outageSince.Delete(cache.MetaObjectToName(kluster))
	}
	if !isBlocked {
		c.retryDelays.Forget(cache.MetaObjectToName(kluster))
	}
	if err := c.updateStatus(ctx, kluster, newStatus(kluster, observed, next, blocking)); err != nil {
		return 0, err
	}
	if isBlocked && blocking.transient != nil {
		return 0, blocking.transient
	}
	return next.requeueAfter, nil
}

// outageTime returns how long the cloud's outage has lasted for a Kluster. It begins when the operator first finds the
// cloud unavailable. After a restart, it begins again.
//
//workshop:step 6.11d
func (c *controller) outageTime(kluster *klusterv1alpha1.Kluster) time.Duration {
	since, _ := c.outageSince.LoadOrStore(cache.MetaObjectToName(kluster), c.options.clock.Now())
	return c.options.clock.Since(since.(time.Time))
}

// retryAfter returns how long to wait after a terminal error, or 0 for a transient one, which is retried with backoff.
// After a terminal error, a person must usually fix something first, so the waits grow, unless the error says how long
// to wait. They start over when the spec or the token's Secret changes (see tokenChanged), and when a reconcile is no
// longer blocked.
func (c *controller) retryAfter(kluster *klusterv1alpha1.Kluster, blocking *blockedError) time.Duration {
	if blocking.requeueAfter > 0 || blocking.transient != nil {
		return blocking.requeueAfter
	}
	key := cache.MetaObjectToName(kluster)
	if kluster.Status.ObservedGeneration != kluster.Generation {
		c.retryDelays.Forget(key)
	}
	return c.retryDelays.When(key)
}

// newStatus computes the status from an observation and a result; blocking is nil unless the result comes from an
// error. Fields that could not be observed keep their values.
//
//workshop:step 6.11a
func newStatus(kluster *klusterv1alpha1.Kluster, observed observation, next result, blocking *blockedError) *klusterv1alpha1.KlusterStatus {
	status := kluster.Status.DeepCopy()
	status.ObservedGeneration = kluster.Generation
	if mayHaveCluster(kluster) {
		status.KlusterID = externalName(kluster)
		status.Account = externalAccount(kluster)
	}
	if secret := observed.tokenSecret; secret != nil && slices.Contains(secret.Finalizers, tokenFinalizer(kluster)) {
		status.TokenSecret = secret.Name
	}
	if cluster := observed.cluster; cluster != nil && cluster.IsOwnedBy(ownerOf(kluster)) {
		status.Progress = string(cluster.State)
		status.Endpoint = cluster.Endpoint
		status.Version = cluster.Version
		status.NodePools = poolStatus(cluster.Pools)
	}
	switch next.reason {
	case klusterv1alpha1.ReasonRunning:
		status.ReadyGeneration = kluster.Generation
	case klusterv1alpha1.ReasonUpdating:
		status.ReadyGeneration = 0
	}
	switch next.reason {
	case klusterv1alpha1.ReasonRunning, klusterv1alpha1.ReasonUpdating, klusterv1alpha1.ReasonDegraded:
		if hasRun(observed.cluster) { // update has already written the kubeconfig
			status.KubeconfigSecret = kubeconfigName(kluster)
		}
	}
	for _, condition := range []*metav1.Condition{
		credentialsCondition(kluster, observed, next, blocking), readyCondition(next), provisionedCondition(kluster, observed, next),
	} {
		if condition != nil {
			condition.ObservedGeneration = kluster.Generation
			meta.SetStatusCondition(&status.Conditions, *condition)
		}
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

//workshop:step 6.11b
func readyCondition(next result) *metav1.Condition {
	status := metav1.ConditionFalse
	switch next.reason {
	case klusterv1alpha1.ReasonRunning:
		status = metav1.ConditionTrue
	case klusterv1alpha1.ReasonPaused, klusterv1alpha1.ReasonUnavailable:
		status = metav1.ConditionUnknown // the cluster may be running, or not
	}
	return newCondition(klusterv1alpha1.ConditionReady, status, next.reason, next.message)
}

// credentialsCondition returns nil, and the condition stays as it is, if the reconcile has learned nothing about the
// token: the Kluster is paused, or is blocked before the token's account is known, but neither by the token nor by an
// outage.
//
//workshop:step 6.11b
func credentialsCondition(kluster *klusterv1alpha1.Kluster, observed observation, next result, blocking *blockedError) *metav1.Condition {
	switch {
	case next.reason == klusterv1alpha1.ReasonPaused:
		return nil
	case blocking != nil && blocking.credentials:
		return newCondition(klusterv1alpha1.ConditionCredentialsReady, metav1.ConditionFalse, next.reason, next.message)
	case observed.cluster == nil && blocking != nil && blocking.isOutage():
		return newCondition(klusterv1alpha1.ConditionCredentialsReady, metav1.ConditionUnknown, next.reason, "it is unknown whether the cloud accepts the token")
	case blocking != nil && observed.account == "":
		return nil
	}
	message := fmt.Sprintf("the cloud accepts the token under the key %q of Secret %q", kluster.Spec.TokenSecret.Key, kluster.Spec.TokenSecret.Name)
	if observed.tokenSecret != nil && observed.tokenSecret.DeletionTimestamp != nil {
		message += ", which is being deleted, and will be gone when no Kluster needs it any more"
	}
	return newCondition(klusterv1alpha1.ConditionCredentialsReady, metav1.ConditionTrue, klusterv1alpha1.ReasonTokenAccepted, message)
}

// provisionedCondition keeps the condition True until the Kluster is deleted and its cluster is gone: the condition
// says that the cluster has run, not that it is still running. Once the cluster is gone, the condition stays as it is.
// Unless the result is Deleted, the function returns nil if no cluster was requested, or if the Kluster is paused.
//
//workshop:step 6.11b
func provisionedCondition(kluster *klusterv1alpha1.Kluster, observed observation, next result) *metav1.Condition {
	last := meta.FindStatusCondition(kluster.Status.Conditions, klusterv1alpha1.ConditionProvisioned)
	switch {
	case next.reason == klusterv1alpha1.ReasonDeleted:
		return newCondition(klusterv1alpha1.ConditionProvisioned, metav1.ConditionFalse, klusterv1alpha1.ReasonDeleted, deletedMessage)
	case next.reason == klusterv1alpha1.ReasonPaused || !mayHaveCluster(kluster):
		return nil
	case last != nil && (last.Status == metav1.ConditionTrue || last.Reason == klusterv1alpha1.ReasonDeleted):
		return newCondition(last.Type, last.Status, last.Reason, last.Message)
	case wasProvisioned(observed.cluster) && observed.cluster.IsOwnedBy(ownerOf(kluster)):
		return newCondition(klusterv1alpha1.ConditionProvisioned, metav1.ConditionTrue, klusterv1alpha1.ReasonRunning, "the cluster has been made")
	}
	return newCondition(klusterv1alpha1.ConditionProvisioned, metav1.ConditionFalse, klusterv1alpha1.ReasonProvisioning, "the cluster has not been made yet")
}

func newCondition(kind string, status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// +kubebuilder:rbac:groups=inspirit941.dev,resources=klusters/status,verbs=update

// updateStatus writes the status if it differs from the current one, and emits an event if the status or reason of
// Ready has changed. The request contains the Kluster's resource version, so the API server refuses a status that was
// computed from a stale Kluster.
//
//workshop:step 6.11c
func (c *controller) updateStatus(ctx context.Context, kluster *klusterv1alpha1.Kluster, status *klusterv1alpha1.KlusterStatus) error {
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
	c.wrote(kluster, written)
	c.announce(kluster, meta.FindStatusCondition(status.Conditions, klusterv1alpha1.ConditionReady))
	return nil
}

// announce emits an event if the condition has a new status or reason. Resyncs and restarts change neither, so they
// cause no event.
//
//workshop:step 6.11c
func (c *controller) announce(kluster *klusterv1alpha1.Kluster, ready *metav1.Condition) {
	before := meta.FindStatusCondition(kluster.Status.Conditions, klusterv1alpha1.ConditionReady)
	if before != nil && before.Status == ready.Status && before.Reason == ready.Reason {
		return
	}
	eventType := corev1.EventTypeWarning
	switch ready.Reason {
	case klusterv1alpha1.ReasonRunning, klusterv1alpha1.ReasonProvisioning, klusterv1alpha1.ReasonUpdating,
		klusterv1alpha1.ReasonDeleting, klusterv1alpha1.ReasonDeleted, klusterv1alpha1.ReasonPaused:
		eventType = corev1.EventTypeNormal
	}
	c.recorder.Eventf(kluster, nil, eventType, ready.Reason, "Reconcile", "%s", ready.Message)
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// patience is how many failures in a row of the cloud, or of the way there, stay unreported: most pass.
const patience = 3

// sync brings one Kluster up to date, as far as that is possible without waiting,
// and returns after how long it is to be called again, 0 if events will tell. It
// may be called any number of times.
func (c *controller) sync(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
	kluster, err := c.klusters.Klusters(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.replaced.forget(key)
		c.creations.forget(key)
		c.identities.forget(key)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("get Kluster %s: %w", key, err)
	}
	if c.replaced.of(key) == kluster.ResourceVersion {
		return 0, nil // the event of our own last write is on its way
	}
	if kluster.DeletionTimestamp != nil {
		return c.finalize(ctx, kluster)
	}
	if !slices.Contains(kluster.Finalizers, klusterv1alpha1.Finalizer) {
		return 0, c.addFinalizer(ctx, kluster) // its event brings us here again
	}
	return c.provision(ctx, kluster)
}

// obstacle is why a Kluster is not as it should be, in the words of its conditions.
type obstacle struct {
	reason, message string
	// credentials tells that the token is the reason.
	credentials bool
	// after is how long to wait before another try; zero for the usual time.
	after time.Duration
	// cause is the error that is tried again sooner, less and less often; nil if that would not help.
	cause error
}

// Error makes an obstacle an error, so that it ends what it stands in the way of.
func (o *obstacle) Error() string { return fmt.Sprintf("%s: %s", o.reason, o.message) }

// obstacleOf translates the error of a call to the cloud. One that is not an answer comes from the network. NotFound
// is not final here: it may be about a node pool, or about something that the cloud does not show yet. The next look
// at the cluster itself decides, see findOrCreate and removeCluster.
func obstacleOf(err error) error {
	if wait, unsent := errors.AsType[*postponed](err); unsent {
		return wait
	}
	answer, answered := errors.AsType[*cloud.Error](err)
	if !answered {
		return &obstacle{reason: klusterv1alpha1.ReasonUnavailable, message: "the cloud does not answer", cause: err}
	}
	message := fmt.Sprintf("the cloud answers: %s", answer.Message)
	switch answer.Problem {
	case cloud.Unauthorized:
		return &obstacle{reason: klusterv1alpha1.ReasonTokenRejected, message: message, credentials: true}
	case cloud.NameTaken:
		return &obstacle{reason: klusterv1alpha1.ReasonNameTaken, message: message + ": it is not this Kluster's, and stays as it is"}
	case cloud.Refused:
		return &obstacle{reason: klusterv1alpha1.ReasonRefused, message: message}
	case cloud.Busy:
		if answer.RetryAfter > 0 {
			return &obstacle{reason: klusterv1alpha1.ReasonUnavailable, message: message, after: answer.RetryAfter}
		}
	}
	return &obstacle{reason: klusterv1alpha1.ReasonUnavailable, message: message, cause: err}
}

// settle reports what was found, and says when to go on.
func (c *controller) settle(ctx context.Context, kluster *klusterv1alpha1.Kluster, found findings, after time.Duration, err error) (time.Duration, error) {
	if wait, unsent := errors.AsType[*postponed](err); unsent {
		if isReported(kluster) {
			return wait.left, c.recordNew(ctx, kluster, found) // the status still says what was found last
		}
		err = &obstacle{reason: klusterv1alpha1.ReasonUnavailable, message: "the cloud has asked for a pause", after: wait.left}
	}
	obstacle, obstructed := errors.AsType[*obstacle](err)
	if err != nil && !obstructed {
		return 0, err
	}
	if obstructed && obstacle.cause != nil && c.queue.NumRequeues(cache.MetaObjectToName(kluster)) < patience {
		return 0, errors.Join(c.recordNew(ctx, kluster, found), obstacle.cause)
	}
	found.obstacle = obstacle
	if err := c.updateStatus(ctx, kluster, found); err != nil {
		return 0, err
	}
	switch {
	case !obstructed:
		return after, nil
	case obstacle.cause != nil:
		return 0, obstacle.cause
	case obstacle.after > 0:
		return obstacle.after, nil
	}
	return c.options.retryInterval, nil
}

// isReported tells whether the status is about the Kluster as it is now. A change of its spec and its deletion begin a new generation.
func isReported(kluster *klusterv1alpha1.Kluster) bool {
	ready := meta.FindStatusCondition(kluster.Status.Conditions, klusterv1alpha1.ConditionReady)
	return ready != nil && ready.ObservedGeneration == kluster.Generation
}

// recordNew writes the ID of a cluster down that has none recorded, whatever else goes wrong.
func (c *controller) recordNew(ctx context.Context, kluster *klusterv1alpha1.Kluster, found findings) error {
	if found.cluster == nil || kluster.Status.KlusterID != "" {
		return nil
	}
	return c.updateStatus(ctx, kluster, found)
}

// +kubebuilder:rbac:groups=inspirit941.dev,resources=klusters,verbs=patch

// addFinalizer makes a deletion wait for finalize. It comes before the first call of the cloud.
func (c *controller) addFinalizer(ctx context.Context, kluster *klusterv1alpha1.Kluster) error {
	return c.patchFinalizers(ctx, kluster, append(slices.Clone(kluster.Finalizers), klusterv1alpha1.Finalizer))
}

func (c *controller) removeFinalizer(ctx context.Context, kluster *klusterv1alpha1.Kluster) error {
	ours := func(finalizer string) bool { return finalizer == klusterv1alpha1.Finalizer }
	return c.patchFinalizers(ctx, kluster, slices.DeleteFunc(slices.Clone(kluster.Finalizers), ours))
}

// patchFinalizers replaces the list as a whole, so the resource version makes the API server refuse an outdated one.
func (c *controller) patchFinalizers(ctx context.Context, kluster *klusterv1alpha1.Kluster, finalizers []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": kluster.ResourceVersion, "uid": kluster.UID, "finalizers": finalizers,
	}})
	if err != nil {
		return fmt.Errorf("make the patch of the finalizers: %w", err)
	}
	_, err = c.clients.kluster.Inspirit941V1alpha1().Klusters(kluster.Namespace).
		Patch(ctx, kluster.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: programName})
	if err != nil {
		return fmt.Errorf("patch the finalizers of Kluster %s: %w", klog.KObj(kluster), err)
	}
	return nil
}

// isExpected tells whether the error is part of a normal life: the cache lags
// behind, or somebody else was faster. Another try settles it.
func isExpected(err error) bool {
	gone := apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	return gone || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// isRefusal tells whether the API server understood a request and will not have it.
func isRefusal(err error) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && !isNamespaceGoing(err)
}

// isNamespaceGoing tells whether a create came too late: the Kluster is about to be deleted as well.
func isNamespaceGoing(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

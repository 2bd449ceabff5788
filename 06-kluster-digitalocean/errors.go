package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// This table shows what report in status.go does with a reconcile's error:
//
//	error                          in the status                          the next reconcile
//	blockedError, terminal         immediately                            after requeueAfter, or retryAfter, which grows
//	blockedError, an outage        when it has lasted outageThreshold     with backoff
//	blockedError, transient        immediately                            with backoff
//	any other: the API server's    never                                  with backoff
//
// processNext logs an error that it retries with backoff. If isExpected returns true for the error, or the reconcile
// was aborted, processNext does so only with -v=4.

// blockedError says why the operator can't make the cluster match the spec, or can't finish a deletion. The condition
// Ready gets its reason and message.
type blockedError struct {
	reason, message string
	// credentials is true if the token is the problem.
	credentials bool
	// transient is the error that makes the worker retry with backoff. It is nil for a terminal error: an early retry
	// would not help.
	transient error
	// requeueAfter is how long the operator waits after a terminal error before it looks again. If it is zero, the
	// first wait is --retry-interval, and the wait doubles with each further terminal error (see retryDelays).
	requeueAfter time.Duration
}

// Error implements error.
func (b *blockedError) Error() string { return fmt.Sprintf("%s: %s", b.reason, b.message) }

// isOutage reports whether the error is transient and about a request to the cloud. Such an error says nothing about
// the cluster.
func (b *blockedError) isOutage() bool {
	return b.reason == klusterv1alpha1.ReasonUnavailable && b.transient != nil
}

// blocked returns a terminal error.
func blocked(reason, format string, args ...any) *blockedError {
	return &blockedError{reason: reason, message: fmt.Sprintf(format, args...)}
}

// blockedByToken returns a terminal error caused by the token.
func blockedByToken(reason, format string, args ...any) *blockedError {
	err := blocked(reason, format, args...)
	err.credentials = true
	return err
}

// failed returns the error for a cluster that the cloud could not create.
func failed(cluster *cloud.Cluster, requeueAfter time.Duration) error {
	err := blocked(klusterv1alpha1.ReasonFailed, "the cloud could not create the cluster (%q): delete this Kluster and create another", cluster.Message)
	err.requeueAfter = requeueAfter
	return err
}

// notOurs returns the error for a cluster that the operator leaves alone, because this Kluster's tag isn't the
// cluster's only owner tag.
func notOurs(kluster *klusterv1alpha1.Kluster, cluster *cloud.Cluster) error {
	found := "no owner tag"
	if len(cluster.Owners) > 0 {
		var tags []string
		for _, owner := range cluster.Owners {
			tags = append(tags, owner.Tag())
		}
		found = "the owner tag " + strings.Join(tags, " and ")
	}
	return blocked(klusterv1alpha1.ReasonNotOwned, "cluster %s has %s: to give it to this Kluster, make %s its only owner tag; to give it up, set spec.deletionPolicy to Orphan and delete this Kluster",
		cluster.ID, found, ownerOf(kluster).Tag())
}

// rateMessage is the message for a request that the cloud refuses with Busy, and for one that is not sent because of an
// earlier refusal. With two different messages, a pause would change the status twice.
const rateMessage = "the cloud limits the rate of requests"

// cloudError translates the error from a request to the cloud. A rateLimitedError means that the request was not
// sent. Any other error that is not a *cloud.Error means that no valid response arrived. NotFound is transient here:
// it may be about a node pool, or about something that the cloud does not show yet. The next observation of the
// cluster decides.
//
//workshop:step 6.8b
func cloudError(err error) error {
	message, problem := "the cloud does not answer", cloud.Unavailable
	if answer, answered := errors.AsType[*cloud.Error](err); answered {
		message, problem = "the cloud answers: "+answer.Message, answer.Problem
	}
	if _, limited := errors.AsType[*rateLimitedError](err); limited {
		problem = cloud.Busy
	}
	switch problem {
	case cloud.Unauthorized:
		return &blockedError{reason: klusterv1alpha1.ReasonTokenRejected, message: message, credentials: true}
	case cloud.NameTaken:
		return &blockedError{reason: klusterv1alpha1.ReasonNameTaken, message: message + ": unless it is this Kluster's, it stays as it is"}
	case cloud.Refused:
		return &blockedError{reason: klusterv1alpha1.ReasonRefused, message: message}
	case cloud.Busy:
		message = rateMessage
	}
	return &blockedError{reason: klusterv1alpha1.ReasonUnavailable, message: message, transient: err}
}

// isExpected reports whether the error is part of normal operation: the cache lags behind, another client was faster,
// or a request was not sent because the cloud had asked for a pause. The operator retries, and logs such an error only
// with -v=4.
func isExpected(err error) bool {
	if _, limited := errors.AsType[*rateLimitedError](err); limited {
		return true
	}
	gone := apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	return gone || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// isRefusal reports whether the API server refuses a request as invalid, or as forbidden, for example because of a
// policy or a quota. A webhook that denies a request without a code causes a BadRequest. The refusal of a create in a
// terminating namespace doesn't count.
func isRefusal(err error) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) && !isNamespaceTerminating(err)
}

// isNamespaceTerminating reports whether a create failed because the namespace is being deleted, and the Kluster with
// it.
func isNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

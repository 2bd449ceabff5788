package main

import (
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Values of the label result.
const (
	resultSuccess = "success"
	// resultRetry is for reconciles that are retried after an expected error, such as a conflict, and for reconciles
	// that were aborted.
	resultRetry = "retry"
	resultError = "error"
)

// reconcileDuration also counts the reconciles: a histogram includes a count.
var reconcileDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
	Name:           "kluster_reconcile_duration_seconds",
	Help:           "How long a reconcile of one Kluster took, by result.",
	Buckets:        metrics.ExponentialBuckets(0.0005, 4, 9), // 0.5 ms to 33 s
	StabilityLevel: metrics.ALPHA,
}, []string{"result"})

// The registry belongs to the process, so all runs in one process share this metric.
func init() { legacyregistry.MustRegister(reconcileDuration) }

func observeReconcile(result string, begun time.Time) {
	reconcileDuration.WithLabelValues(result).Observe(time.Since(begun).Seconds())
}

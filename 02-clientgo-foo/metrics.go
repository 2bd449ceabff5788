package main

import (
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Values of the label result.
const (
	resultSuccess = "success"
	// resultRetry is for syncs that are retried after an expected error, such as a conflict, and for syncs that were
	// aborted.
	resultRetry = "retry"
	resultError = "error"
)

// syncDuration also counts the syncs: a histogram includes a count.
var syncDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
	Name:           "foo_reconcile_duration_seconds",
	Help:           "How long a sync of one Foo took, by result.",
	Buckets:        metrics.ExponentialBuckets(0.0005, 4, 9), // 0.5 ms to 33 s
	StabilityLevel: metrics.ALPHA,
}, []string{"result"})

// The registry belongs to the process, so all runs in it share this metric.
func init() { legacyregistry.MustRegister(syncDuration) }

func observeSync(result string, begun time.Time) {
	syncDuration.WithLabelValues(result).Observe(time.Since(begun).Seconds())
}

package v1_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// BenchmarkAdmission measures how long a user waits for a create. It uses dry runs, so the
// times don't include storing the object. To run it:
//
//	go test -run '^$' -bench Admission -benchtime=1000x ./internal/webhook/v1
func BenchmarkAdmission(b *testing.B) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx := context.Background()
	measured := newEnvironment()
	b.Cleanup(func() {
		if err := measured.stop(ctx); err != nil {
			b.Error(err)
		}
	})
	if err := measured.start(ctx); err != nil {
		b.Fatal(err)
	}
	if err := measured.askWebhooksAndPolicies(ctx); err != nil {
		b.Fatal(err)
	}
	for _, namespace := range []string{byNone, byPolicies, byWebhooks} {
		b.Run(namespace, func(b *testing.B) {
			if err := measured.awaitAnswers(ctx, namespace); err != nil {
				b.Fatal(err)
			}
			measureCreates(ctx, b, measured.Client, namespace)
		})
	}
}

// measureCreates creates one Password after another in dry runs, and reports the latencies at the 50th and the 99th
// percentile.
func measureCreates(ctx context.Context, b *testing.B, as client.Client, namespace string) {
	b.Helper()
	var latencies []time.Duration
	for b.Loop() {
		object := password("new", rotation)
		object.Namespace = namespace
		begin := time.Now()
		if err := as.Create(ctx, object, client.DryRunAll); err != nil {
			b.Fatal(err)
		}
		latencies = append(latencies, time.Since(begin))
	}
	slices.Sort(latencies)
	b.ReportMetric(milliseconds(latencies, 50), "p50-ms")
	b.ReportMetric(milliseconds(latencies, 99), "p99-ms")
}

// milliseconds returns the latency at a percentile, in milliseconds.
func milliseconds(sorted []time.Duration, percent int) float64 {
	return float64(sorted[(len(sorted)-1)*percent/100].Microseconds()) / 1000
}

// awaitAnswers waits until a default, a refusal and a warning show that the webhooks or the policies are in effect
// in the namespace. In byNone, there is nothing to wait for.
func (e *environment) awaitAnswers(ctx context.Context, namespace string) error {
	if namespace == byNone {
		return nil
	}
	return wait.PollUntilContextTimeout(ctx, pollInterval, waitTimeout, true, func(ctx context.Context) (bool, error) {
		for _, name := range []string{"the defaults", "11 digits once", "8 letters"} {
			c := cases()[name]
			found, err := e.try(ctx, namespace, c)
			if err != nil || c.differs(found) != "" {
				return false, err
			}
		}
		return true, nil
	})
}

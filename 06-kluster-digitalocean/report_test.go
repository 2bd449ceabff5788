package main

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	klusterfake "example.com/operator-workshop/06-kluster-digitalocean/pkg/generated/clientset/versioned/fake"
)

// First come the cases without an error; the others follow the table in errors.go, line by line.
func TestReport(t *testing.T) {
	outage := errors.New("503")
	transient := &blockedError{reason: klusterv1alpha1.ReasonUnavailable, message: "no answer", transient: outage}
	conflict := errors.New("conflict")
	tests := map[string]struct {
		next result
		err  error
		// failures is how many reconciles of the Kluster in a row have already failed.
		failures int
		// reported means that the status already describes the current generation.
		reported bool

		wantAfter time.Duration
		wantErr   error
		// wantReason is the reason of the condition Ready; "" means that the status is not written.
		wantReason string
	}{
		"a result":                             {next: running, wantReason: "Running"},
		"a result with a requeue time":         {next: result{"Updating", "wait", time.Minute}, wantAfter: time.Minute, wantReason: "Updating"},
		"metadata or a Secret was written":     {},
		"a terminal error":                     {err: blocked("NameTaken", "exists"), wantAfter: 30 * time.Second, wantReason: "NameTaken"},
		"a terminal error with a requeue time": {err: &blockedError{reason: "Failed", message: "no", requeueAfter: time.Hour}, wantAfter: time.Hour, wantReason: "Failed"},
		"a first transient error":              {err: transient, wantErr: outage},
		"a third transient error":              {err: transient, failures: 2, wantErr: outage},
		"a fourth transient error":             {err: transient, failures: 3, wantErr: outage, wantReason: "Unavailable"},
		"a pause, and nothing was reported":    {err: &rateLimitedError{left: time.Minute}, wantAfter: time.Minute, wantReason: "Unavailable"},
		"a pause, and all was reported":        {err: &rateLimitedError{left: time.Minute}, reported: true, wantAfter: time.Minute},
		"an error of the API server":           {err: conflict, failures: 9, wantErr: conflict},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kluster := storedKluster()
			if test.reported {
				kluster.Status.ObservedGeneration = kluster.Generation
				kluster.Status.Conditions = []metav1.Condition{{Type: klusterv1alpha1.ConditionReady, ObservedGeneration: kluster.Generation}}
			}
			c := newHandlers(t)
			clientset := klusterfake.NewClientset(kluster)
			c.clients, c.recorder = &clients{kluster: clientset}, events.NewFakeRecorder(1)
			for range test.failures {
				c.queue.AddRateLimited(cache.MetaObjectToName(kluster))
			}
			after, err := c.report(t.Context(), kluster, observation{}, test.next, test.err)
			g.Expect(after).To(Equal(test.wantAfter), "see report in status.go")
			if test.wantErr == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(test.wantErr))
			}
			written, err := clientset.Inspirit941V1alpha1().Klusters(kluster.Namespace).Get(t.Context(), kluster.Name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			ready := meta.FindStatusCondition(written.Status.Conditions, klusterv1alpha1.ConditionReady)
			if test.wantReason == "" {
				g.Expect(written.Status).To(Equal(kluster.Status), "the status must not be written, see report and isReported in status.go")
				return
			}
			g.Expect(ready).To(HaveValue(HaveField("Reason", test.wantReason)))
			if _, limited := errors.AsType[*rateLimitedError](test.err); limited {
				g.Expect(ready.Message).To(ContainSubstring("asked for a pause"), "the message must say that the cloud has asked for a pause, see report in status.go")
			}
		})
	}
}

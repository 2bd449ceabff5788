package main

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
	klusterfake "example.com/operator-workshop/06-kluster-digitalocean/pkg/generated/clientset/versioned/fake"
	"example.com/operator-workshop/doks"
)

// First come the cases without an error; the others follow the table in errors.go, line by line.
func TestReport(t *testing.T) {
	outage := errors.New("503")
	unavailable := &blockedError{reason: klusterv1alpha1.ReasonUnavailable, message: "no answer", transient: outage}
	refusal := errors.New("403")
	conflict := errors.New("conflict")
	tests := map[string]struct {
		next result
		err  error
		// outage is how long the cloud has been unavailable.
		outage time.Duration
		// waits is how many terminal errors in a row came before, and changed means that the spec has changed since.
		waits   int
		changed bool

		wantAfter time.Duration
		wantErr   error
		// wantReason is the reason of the Ready condition; "" means that the status is not written.
		wantReason string
	}{
		"a result":                             {next: running, waits: 3, wantReason: "Running"},
		"a result with a requeue time":         {next: result{"Updating", "wait", time.Minute}, wantAfter: time.Minute, wantReason: "Updating"},
		"metadata or a Secret was written":     {},
		"a terminal error":                     {err: blocked("NameTaken", "exists"), wantAfter: 30 * time.Second, wantReason: "NameTaken"},
		"a third terminal error":               {err: blocked("NameTaken", "exists"), waits: 2, wantAfter: 2 * time.Minute, wantReason: "NameTaken"},
		"a tenth terminal error":               {err: blocked("NameTaken", "exists"), waits: 9, wantAfter: 10 * time.Minute, wantReason: "NameTaken"},
		"a terminal error with a new spec":     {err: blocked("Refused", "invalid"), waits: 9, changed: true, wantAfter: 30 * time.Second, wantReason: "Refused"},
		"a terminal error with a requeue time": {err: &blockedError{reason: "Failed", message: "no", requeueAfter: time.Hour}, wantAfter: time.Hour, wantReason: "Failed"},
		"the beginning of an outage":           {err: unavailable, wantErr: outage},
		"an outage of 59 seconds":              {err: unavailable, outage: 59 * time.Second, wantErr: outage},
		"an outage of a minute":                {err: unavailable, outage: time.Minute, wantErr: outage, wantReason: "Unavailable"},
		"another transient error":              {err: &blockedError{reason: "SecretRefused", message: "no", transient: refusal}, wantErr: refusal, wantReason: "SecretRefused"},
		"an error of the API server":           {err: conflict, outage: time.Hour, wantErr: conflict},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kluster := storedKluster()
			if !test.changed {
				kluster.Status.ObservedGeneration = kluster.Generation
			}
			now := time.Now()
			c := newHandlers(t)
			for range test.waits {
				c.retryDelays.When(cache.MetaObjectToName(kluster))
			}
			c.options.clock = clocktesting.NewFakePassiveClock(now)
			if test.outage > 0 {
				c.outageSince.Store(cache.MetaObjectToName(kluster), now.Add(-test.outage))
			}
			clientset := klusterfake.NewClientset(kluster)
			c.clients, c.recorder = &clients{kluster: clientset}, events.NewFakeRecorder(1)
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
				g.Expect(written.Status).To(Equal(kluster.Status), "the status must not be written, see report and outageTime in status.go")
				return
			}
			g.Expect(ready).To(HaveValue(HaveField("Reason", test.wantReason)))
			if test.err == nil {
				g.Expect(c.retryDelays.NumRequeues(cache.MetaObjectToName(kluster))).To(BeZero(), "the next terminal error must count as the first again, see report in status.go")
			}
		})
	}
}

// After an outage, a missing machine must not be reported as Updating, as if the spec had changed.
func TestAMachineIsMissingAfterAnOutage(t *testing.T) {
	g := NewWithT(t)
	r := newTrial(t, storedKluster())
	r.options.outageThreshold = 0
	g.Expect(r.steps(t)).To(Succeed())
	g.Expect(r.reason(t)).To(Equal(klusterv1alpha1.ReasonRunning))
	g.Expect(r.cloud.AddFault(doks.Fault{Kind: doks.FaultUnavailable, Count: doks.Always})).To(Succeed())
	g.Expect(r.steps(t)).NotTo(Succeed())
	g.Expect(r.reason(t)).To(Equal(klusterv1alpha1.ReasonUnavailable))
	r.cloud.ClearFaults()
	r.openAccount = missingMachine(r.openAccount)
	g.Expect(r.steps(t)).To(Succeed())
	g.Expect(r.live(t).Status.NodePools).To(ConsistOf(HaveField("Running", BeZero())))
	g.Expect(r.reason(t)).To(Equal(klusterv1alpha1.ReasonRunning), "see wasReady in compare.go")
}

// missingMachine wraps open: Get then returns each cluster with no machines running.
func missingMachine(open func(string) cloud.CloudProvider) func(string) cloud.CloudProvider {
	return func(token string) cloud.CloudProvider { return withoutMachines{open(token)} }
}

type withoutMachines struct{ cloud.CloudProvider }

func (w withoutMachines) Get(ctx context.Context, id string) (*cloud.Cluster, error) {
	found, err := w.CloudProvider.Get(ctx, id)
	if err == nil {
		for i := range found.Pools {
			found.Pools[i].Running = 0
		}
	}
	return found, err
}

// An outage says nothing about the cluster, which is usually still running.
func TestAnOutageOfTheCloud(t *testing.T) {
	g := NewWithT(t)
	r := newTrial(t, storedKluster())
	clock := clocktesting.NewFakePassiveClock(time.Now())
	r.options.clock = clock
	g.Expect(r.steps(t)).To(Succeed())
	healthy := r.ready(t)
	g.Expect(healthy.Status).To(Equal(metav1.ConditionTrue))
	for _, kind := range []doks.FaultKind{doks.FaultUnavailable, doks.FaultServerError, doks.FaultBadGateway, doks.FaultTooMany, doks.FaultDrop} {
		g.Expect(r.cloud.AddFault(doks.Fault{Kind: kind, Count: doks.Always})).To(Succeed())
		g.Expect(r.steps(t)).NotTo(Succeed())
		g.Expect(r.ready(t)).To(Equal(healthy), "%s: an outage that has just begun must not be reported, see report in status.go", kind)
		clock.SetTime(clock.Now().Add(time.Minute))
		g.Expect(r.steps(t)).NotTo(Succeed())
		g.Expect(r.ready(t)).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", klusterv1alpha1.ReasonUnavailable)),
			"%s: the operator doesn't know whether the cluster is running, see readyCondition in status.go", kind)
		r.cloud.ClearFaults()
		g.Expect(r.steps(t)).To(Succeed())
		g.Expect(r.ready(t).Status).To(Equal(metav1.ConditionTrue), "the outage is over")
		healthy = r.ready(t)
	}
}

package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

func TestUnsettled(t *testing.T) {
	const settleTime = 30 * time.Second
	tests := map[string]struct {
		// deleted, begun and created are how long ago these were; a zero created is never.
		deleted, begun, created time.Duration
		// ran tells that the cluster has run, and recorded that its ID is known.
		ran, recorded bool
		want          time.Duration
	}{
		"the deletion is the last of all":                 {deleted: 10 * time.Second, begun: time.Hour, created: time.Minute, want: 20 * time.Second},
		"a creation hung, and ended after the deletion":   {deleted: time.Minute, begun: time.Hour, created: 5 * time.Second, want: 25 * time.Second},
		"another replica may have asked for one":          {deleted: time.Minute, begun: 12 * time.Second, want: 18 * time.Second},
		"a cluster that never ran may not be shown yet":   {deleted: 10 * time.Second, begun: time.Hour, recorded: true, want: 20 * time.Second},
		"a cluster that ran was shown before":             {deleted: 10 * time.Second, begun: 5 * time.Second, ran: true, recorded: true, want: 0},
		"a cluster ran whose ID was lost":                 {deleted: 10 * time.Second, begun: time.Hour, ran: true, want: 20 * time.Second},
		"the Kluster is not deleted":                      {begun: time.Hour, created: 10 * time.Second, recorded: true, want: 20 * time.Second},
		"all of it was long ago":                          {deleted: time.Minute, begun: time.Hour, created: 2 * time.Minute, want: -30 * time.Second},
		"the settle time is over, and not a moment later": {deleted: settleTime, begun: time.Hour, want: 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			kluster := &klusterv1alpha1.Kluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}}
			if test.deleted > 0 {
				kluster.DeletionTimestamp = &metav1.Time{Time: now.Add(-test.deleted)}
			}
			if test.recorded {
				kluster.Status.KlusterID = "id"
			}
			if test.ran {
				kluster.Status.Conditions = []metav1.Condition{{Type: klusterv1alpha1.ConditionProvisioned, Status: metav1.ConditionTrue}}
			}
			c := &controller{begun: now.Add(-test.begun)}
			c.options.clock, c.options.settleTime = clocktesting.NewFakePassiveClock(now), settleTime
			if test.created > 0 {
				c.creations.set(cache.MetaObjectToName(kluster), now.Add(-test.created))
			}
			NewWithT(t).Expect(c.unsettled(kluster)).To(Equal(test.want), "see finalize.go")
		})
	}
}

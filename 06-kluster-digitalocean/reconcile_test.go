package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

func TestConsistencyWindow(t *testing.T) {
	tests := map[string]struct {
		// missing is how long ago the operator first found the cluster missing. If it is zero, the operator has not
		// found it missing before.
		missing time.Duration
		// ran means that the cluster has run, and recorded means that its ID is known.
		ran, recorded bool
		want          time.Duration
	}{
		"it is found missing for the first time":         {want: 30 * time.Second},
		"it was found missing before":                    {missing: 10 * time.Second, want: 20 * time.Second},
		"it was created, but is not shown by its ID yet": {missing: 10 * time.Second, recorded: true, want: 20 * time.Second},
		"it has run, so it was shown before":             {recorded: true, ran: true, want: 0},
		"it has run, and its ID was lost":                {missing: 10 * time.Second, ran: true, want: 20 * time.Second},
		"the window ends now":                            {missing: 30 * time.Second, want: 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			now := time.Now()
			kluster := storedKluster()
			if test.recorded {
				kluster.Annotations = map[string]string{klusterv1alpha1.ExternalNameAnnotation: "id"}
			}
			if test.ran {
				kluster.Status.Conditions = []metav1.Condition{{Type: klusterv1alpha1.ConditionProvisioned, Status: metav1.ConditionTrue}}
			}
			c := &controller{}
			c.options.clock, c.options.consistencyWindow = clocktesting.NewFakePassiveClock(now), 30*time.Second
			if test.missing > 0 {
				c.missingSince.Store(cache.MetaObjectToName(kluster), now.Add(-test.missing))
			}
			g.Expect(c.consistencyWindow(kluster)).To(Equal(test.want), "see deletion.go")
			g.Expect(c.consistencyWindow(kluster)).To(Equal(test.want), "a second call must not restart the window")
		})
	}
}

func TestIsHandedOver(t *testing.T) {
	ours, theirs := ownerOf(storedKluster()), cloud.Owner{UID: "uid-of-another"}
	tests := map[string]struct {
		owners         []cloud.Owner
		want, wantOurs bool
	}{
		"it is ours":                {owners: []cloud.Owner{ours}, wantOurs: true},
		"it is another Kluster's":   {owners: []cloud.Owner{theirs}, want: true},
		"two Klusters claim it":     {owners: []cloud.Owner{theirs, ours}},
		"its tags were all removed": {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cluster := foundCluster(cloud.StateRunning)
			cluster.Owners = test.owners
			g.Expect(isHandedOver(storedKluster(), cluster)).To(Equal(test.want), "see isHandedOver in compare.go")
			g.Expect(cluster.IsOwnedBy(ours)).To(Equal(test.wantOurs), "see IsOwnedBy in internal/cloud")
			g.Expect(notOurs(storedKluster(), cluster).Error()).To(ContainSubstring("make kluster-uid:uid-of-front its only owner tag"), "the message must say what to do")
		})
	}
}

func TestCloudSpec(t *testing.T) {
	g := NewWithT(t)
	kluster := storedKluster()
	kluster.Spec.NodePools = []klusterv1alpha1.NodePool{
		{
			Name: "web", Size: "c-2", Count: 3, Labels: map[string]string{"tier": "web"},
			Taints: []klusterv1alpha1.Taint{{Key: "dedicated", Value: "web", Effect: "NoSchedule"}},
		},
		{Name: "jobs", Size: "c-4", Autoscale: &klusterv1alpha1.Autoscale{MinNodes: 1, MaxNodes: 4}},
	}
	g.Expect(cloudSpec(kluster)).To(Equal(cloud.Spec{
		Name: "front", Origin: "shop/front", Region: "fra1", Version: "1.36",
		Pools: []cloud.Pool{
			{
				Name: "web", Size: "c-2", Count: 3, Labels: map[string]string{"tier": "web"},
				Taints: []cloud.Taint{{Key: "dedicated", Value: "web", Effect: "NoSchedule"}},
			},
			{Name: "jobs", Size: "c-4", Autoscale: &cloud.Autoscale{Min: 1, Max: 4}},
		},
	}))
	g.Expect(ownerOf(kluster)).To(Equal(cloud.Owner{UID: "uid-of-front"}), "names are reused, UIDs are not")
}

func TestIsComplete(t *testing.T) {
	tests := map[string]struct {
		pools []cloud.Pool
		want  bool
	}{
		"all machines are running":              {pools: []cloud.Pool{{Count: 1, Running: 1}, {Count: 2, Running: 2}}, want: true},
		"a machine of the last pool is missing": {pools: []cloud.Pool{{Count: 1, Running: 1}, {Count: 2, Running: 1}}},
		"one machine too many is running":       {pools: []cloud.Pool{{Count: 1, Running: 2}}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(isComplete(&cloud.Cluster{Pools: test.pools})).To(Equal(test.want), "see isComplete in compare.go")
		})
	}
}

package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
)

// observation is a change to the status of a rolled-out Deployment, and the reason that the Foo's condition must then
// have.
type observation struct {
	change     func(*appsv1.DeploymentStatus)
	wantReason string
}

func TestObservedStatus(t *testing.T) {
	tests := map[string]observation{
		"all replicas are new and available": {
			change:     func(*appsv1.DeploymentStatus) {},
			wantReason: examplev1alpha1.ReasonDeploymentAvailable,
		},
		"the Deployment controller has not seen the change yet": {
			change:     func(status *appsv1.DeploymentStatus) { status.ObservedGeneration = 1 },
			wantReason: examplev1alpha1.ReasonDeploymentProgressing,
		},
		"a replica is not available": {
			change:     func(status *appsv1.DeploymentStatus) { status.AvailableReplicas = 2 },
			wantReason: examplev1alpha1.ReasonDeploymentProgressing,
		},
		"a replica has the previous template": {
			change:     func(status *appsv1.DeploymentStatus) { status.UpdatedReplicas = 2 },
			wantReason: examplev1alpha1.ReasonDeploymentProgressing,
		},
		"an old replica is available in place of a new one": {
			change:     func(status *appsv1.DeploymentStatus) { status.Replicas = 4 },
			wantReason: examplev1alpha1.ReasonDeploymentProgressing,
		},
	}
	for name, test := range tests {
		t.Run(name, test.run)
	}
}

func TestObservedStatusOfAStalledRollout(t *testing.T) {
	tests := map[string]observation{
		"the rollout exceeds its deadline": {
			change: func(status *appsv1.DeploymentStatus) {
				status.AvailableReplicas = 0
				status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse}}
				status.Conditions[0].Message = "timed out"
			},
			wantReason: examplev1alpha1.ReasonDeploymentStalled,
		},
		"the Deployment controller has not seen a change made after the deadline": {
			change: func(status *appsv1.DeploymentStatus) {
				status.ObservedGeneration = 1
				status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: "timed out"}}
			},
			wantReason: examplev1alpha1.ReasonDeploymentProgressing,
		},
		"pods can't be created": {
			change: func(status *appsv1.DeploymentStatus) {
				status.AvailableReplicas = 0
				status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "quota"}}
			},
			wantReason: examplev1alpha1.ReasonDeploymentStalled,
		},
	}
	for name, test := range tests {
		t.Run(name, test.run)
	}
}

func (o observation) run(t *testing.T) {
	g := NewWithT(t)
	deployment := storedDeployment()
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}
	o.change(&deployment.Status)
	status := observedStatus(storedFoo(), deployment)
	g.Expect(status).NotTo(BeNil(), "see observedStatus in status.go")
	ready := meta.FindStatusCondition(status.Conditions, examplev1alpha1.ConditionReady)
	g.Expect(ready).NotTo(BeNil(), "the status needs the condition Ready")
	g.Expect(ready.Reason).To(Equal(o.wantReason))
	g.Expect(ready.Status == metav1.ConditionTrue).To(Equal(o.wantReason == examplev1alpha1.ReasonDeploymentAvailable))
	g.Expect(ready.ObservedGeneration).To(BeEquivalentTo(3))
	g.Expect(status.ObservedGeneration).To(BeEquivalentTo(3))
	g.Expect(status.AvailableReplicas).To(Equal(deployment.Status.AvailableReplicas))
	g.Expect(status.Replicas).To(Equal(deployment.Status.Replicas), "the scale subresource counts all pods, see the marker in types.go")
	g.Expect(status.Selector).To(Equal("app.kubernetes.io/instance=web,app.kubernetes.io/name=foo"))
}

func TestObservedStatusIsStable(t *testing.T) {
	g := NewWithT(t)
	deployment := storedDeployment()
	foo := storedFoo()
	status := observedStatus(foo, deployment)
	g.Expect(status).To(HaveField("Conditions", HaveLen(1)), "see observedStatus in status.go")
	foo.Status = *status
	foo.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	g.Expect(observedStatus(foo, deployment)).To(HaveValue(Equal(foo.Status)), "observing an unchanged Deployment again must not change the status")

	foo.Status.Conditions = append(foo.Status.Conditions, metav1.Condition{Type: "Audited", Status: metav1.ConditionTrue})
	g.Expect(observedStatus(foo, deployment)).To(HaveValue(Equal(foo.Status)), "conditions of other controllers must stay")
}

func TestObservedStatusWaitsForTheDeploymentController(t *testing.T) {
	tests := map[string]struct {
		change func(*examplev1alpha1.Foo, *appsv1.Deployment)
		want   metav1.ConditionStatus
	}{
		"a user annotates the Deployment": {
			change: func(_ *examplev1alpha1.Foo, deployment *appsv1.Deployment) { deployment.Generation = 3 },
			want:   metav1.ConditionTrue,
		},
		"the Deployment was recreated": {
			change: func(_ *examplev1alpha1.Foo, deployment *appsv1.Deployment) {
				deployment.Status = appsv1.DeploymentStatus{}
			},
			want: metav1.ConditionFalse,
		},
		"the Foo has changed": {
			change: func(foo *examplev1alpha1.Foo, deployment *appsv1.Deployment) {
				foo.Generation, deployment.Generation = 4, 3
			},
			want: metav1.ConditionFalse,
		},
		"a replica is lost": {
			change: func(_ *examplev1alpha1.Foo, deployment *appsv1.Deployment) { deployment.Status.AvailableReplicas = 2 },
			want:   metav1.ConditionFalse,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			foo, deployment := storedFoo(), storedDeployment()
			deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}
			before := observedStatus(foo, deployment)
			g.Expect(before).NotTo(BeNil(), "see observedStatus in status.go")
			foo.Status = *before
			test.change(foo, deployment)
			status := observedStatus(foo, deployment)
			g.Expect(status.Conditions).To(ConsistOf(HaveField("Status", test.want)), "see isUndecided in status.go")
		})
	}
}

func TestBlockedStatus(t *testing.T) {
	g := NewWithT(t)
	foo := storedFoo()
	foo.Status.Replicas, foo.Status.AvailableReplicas = 4, 3
	status := blockedStatus(foo, nil, &blocker{reason: "SomeReason", message: "what to do"})
	g.Expect(status).NotTo(BeNil(), "see blockedStatus in status.go")
	g.Expect(status.Replicas+status.AvailableReplicas).To(BeZero(), "pods of someone else's Deployment don't count")
	g.Expect(status.Conditions).To(ConsistOf(And(
		HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "SomeReason"), HaveField("Message", "what to do"))))
}

func TestBlockedStatusOfAFooWithItsDeployment(t *testing.T) {
	g := NewWithT(t)
	deployment := storedDeployment()
	deployment.Status.Replicas, deployment.Status.AvailableReplicas = 4, 3
	status := blockedStatus(storedFoo(), deployment, &blocker{reason: "SomeReason", message: "what to do"})
	g.Expect(status).To(And(HaveField("Replicas", BeEquivalentTo(4)), HaveField("AvailableReplicas", BeEquivalentTo(3))),
		"the Foo has its Deployment, so its pods count, see blockedStatus in status.go")
}

func TestAnnounce(t *testing.T) {
	available := &metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: examplev1alpha1.ReasonDeploymentAvailable, Message: "100% there"}
	progressing := &metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: examplev1alpha1.ReasonDeploymentProgressing}
	taken := &metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: examplev1alpha1.ReasonErrResourceExists, Message: "taken"}
	refused := &metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: examplev1alpha1.ReasonDeploymentRefused, Message: "quota is 100% used"}
	stalled := &metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: examplev1alpha1.ReasonDeploymentStalled, Message: "timed out"}
	tests := map[string]struct {
		before, after *metav1.Condition
		// want is the expected event, or "" if there must be none.
		want string
	}{
		"a new Foo is progressing":     {after: progressing},
		"a Foo becomes ready":          {before: progressing, after: available, want: "Normal Synced 100% there"},
		"a ready Foo stays ready":      {before: available, after: available},
		"a ready Foo rolls out":        {before: available, after: progressing},
		"a name turns out to be taken": {after: taken, want: "Warning ErrResourceExists taken"},
		"a name stays taken":           {before: taken, after: taken},
		"a Deployment is refused":      {before: taken, after: refused, want: "Warning DeploymentRefused quota is 100% used"},
		"a rollout is stalled":         {before: progressing, after: stalled, want: "Warning DeploymentStalled timed out"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			recorder := events.NewFakeRecorder(1)
			foo := storedFoo()
			if test.before != nil {
				foo.Status.Conditions = []metav1.Condition{*test.before}
			}
			(&controller{recorder: recorder}).announce(foo, test.after)
			if test.want == "" {
				g.Expect(recorder.Events).To(BeEmpty())
				return
			}
			g.Expect(recorder.Events).NotTo(BeEmpty(), "%q must be recorded as an event", test.want)
			g.Expect(recorder.Events).To(Receive(Equal(test.want)), "see announce in status.go: Eventf formats its note, so pass the message as an argument")
		})
	}
}

func TestStaleVersions(t *testing.T) {
	g := NewWithT(t)
	var writes staleVersions
	before, after := storedFoo(), storedFoo()
	after.ResourceVersion = "31"
	g.Expect(writes.isStale(before)).To(BeFalse())
	writes.note(before, before)
	g.Expect(writes.isStale(before)).To(BeFalse(), "a write that changed nothing makes no newer version, so the Foo is not stale, see note in status.go")
	writes.note(before, after)
	g.Expect(writes.isStale(before)).To(BeTrue(), "until the cache shows our write, the Foo is stale, see isStale in status.go")
	g.Expect(writes.isStale(after)).To(BeFalse(), "once the cache shows our write, the Foo is not stale, see isStale in status.go")
	writes.forget(cache.MetaObjectToName(before))
	g.Expect(writes.isStale(before)).To(BeFalse(), "the Foo was deleted, and its entry must not stay in memory")
}

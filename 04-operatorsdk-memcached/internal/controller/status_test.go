package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// late is the condition of a Deployment whose rollout takes too long.
var late = appsv1.DeploymentCondition{
	Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "took too long",
}

// foundDeployment returns the Deployment of storedMemcached with a status.
func foundDeployment(observed int64, conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
	deployment := newDeployment(storedMemcached())
	deployment.Generation = 5
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: observed, Conditions: conditions}
	return deployment
}

// conditionTest is one row of the table of conditions. The wanted conditions are
// written as status and reason.
type conditionTest struct {
	size                                         int32
	observed                                     observation
	wantAvailable, wantProgressing, wantDegraded string
}

const (
	enoughPods = "True EnoughPods"
	tooFewPods = "False TooFewPods"
	rollingOut = "True RollingOut"
	rolledOut  = "False RolledOut"
	asExpected = "False AsExpected"
)

func conditionTests() map[string]conditionTest {
	deployment := foundDeployment(5)
	a, b, c, d := storedPod("a"), storedPod("b"), storedPod("c"), storedPod("d")
	failing := func(pod corev1.Pod) corev1.Pod { return waiting(pod, "ErrImagePull") }
	blocked := func(reason string, pods ...corev1.Pod) observation {
		return observation{deployment: deployment, pods: pods, blocker: &explanation{reason: reason, message: "blocked"}, now: noon}
	}
	of := func(deployment *appsv1.Deployment, pods ...corev1.Pod) observation {
		return observation{deployment: deployment, pods: pods, now: noon}
	}
	without := func(pod corev1.Pod) corev1.Pod { return unscheduled(pod, noon.Add(-5*time.Minute)) }
	return map[string]conditionTest{
		"all pods are ready and new":                {2, of(deployment, a, b), enoughPods, rolledOut, asExpected},
		"there are no pods yet":                     {2, of(deployment), tooFewPods, rollingOut, asExpected},
		"one of two pods is missing":                {2, of(deployment, a), tooFewPods, rollingOut, asExpected},
		"one of two pods is not ready":              {2, of(deployment, a, unready(b)), tooFewPods, rollingOut, asExpected},
		"one of three pods is not ready":            {3, of(deployment, a, b, unready(c)), tooFewPods, rollingOut, asExpected},
		"one of four pods is not ready":             {4, of(deployment, a, b, c, unready(d)), enoughPods, rollingOut, asExpected},
		"two of four pods are not ready":            {4, of(deployment, a, b, unready(c), unready(d)), tooFewPods, rollingOut, asExpected},
		"one of five pods is missing":               {5, of(deployment, a, b, c, d), enoughPods, rollingOut, asExpected},
		"there is an extra pod":                     {2, of(deployment, a, b, c), enoughPods, rollingOut, asExpected},
		"an extra pod is not ready":                 {2, of(deployment, a, b, unready(c)), enoughPods, rollingOut, asExpected},
		"a pod is of a former revision":             {2, of(deployment, a, ofOldRevision(b)), enoughPods, rollingOut, asExpected},
		"all pods are of a former revision":         {2, of(deployment, ofOldRevision(a), ofOldRevision(b)), enoughPods, rollingOut, asExpected},
		"a new pod fails while the old ones serve":  {2, of(deployment, ofOldRevision(a), ofOldRevision(b), failing(c)), enoughPods, "False PodsFailing", "True PodsFailing"},
		"an old pod fails while a new one starts":   {1, of(deployment, ofOldRevision(failing(a)), unready(b)), tooFewPods, rollingOut, asExpected},
		"a pod has been unschedulable for minutes":  {5, of(deployment, a, b, c, d, without(storedPod("e"))), enoughPods, "False PodsFailing", "True PodsFailing"},
		"all pods fail":                             {2, of(deployment, failing(a), failing(b)), tooFewPods, "False PodsFailing", "True PodsFailing"},
		"the rollout is stuck":                      {2, of(foundDeployment(5, late), a), tooFewPods, "False Stalled", "True Stalled"},
		"a former rollout was stuck":                {2, of(foundDeployment(4, late), a), tooFewPods, rollingOut, asExpected},
		"a stuck rollout has a failing pod":         {2, of(foundDeployment(5, late), a, failing(b)), tooFewPods, "False PodsFailing", "True PodsFailing"},
		"a child is being removed":                  {2, blocked(cachev1alpha1.ReasonRollingOut, a, b), enoughPods, rollingOut, asExpected},
		"a child is being removed, and a pod fails": {2, blocked(cachev1alpha1.ReasonRollingOut, a, failing(b)), tooFewPods, rollingOut, asExpected},
		"a child is being removed; a pod crashed":   {2, blocked(cachev1alpha1.ReasonRollingOut, a, crashed(b, 2, noon)), tooFewPods, rollingOut, asExpected},
		"the Deployment is being removed":           {2, observation{blocker: &explanation{reason: cachev1alpha1.ReasonRollingOut, message: "blocked"}}, tooFewPods, rollingOut, asExpected},
		"the Deployment's name is taken":            {2, observation{blocker: &explanation{reason: cachev1alpha1.ReasonNameTaken, message: "blocked"}}, "False NameTaken", "False NameTaken", "True NameTaken"},
		"the Service's name is taken":               {2, blocked(cachev1alpha1.ReasonNameTaken, a, b), "False NameTaken", "False NameTaken", "True NameTaken"},
		"the Deployment is refused":                 {2, observation{blocker: &explanation{reason: cachev1alpha1.ReasonRefused, message: "blocked"}}, tooFewPods, "False Refused", "True Refused"},
		"a change of the Deployment is refused":     {2, blocked(cachev1alpha1.ReasonRefused, a, b), enoughPods, "False Refused", "True Refused"},
	}
}

func TestConditions(t *testing.T) {
	for name, test := range conditionTests() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			memcached := storedMemcached()
			memcached.Spec.Size = test.size
			computed := test.observed.conditions(memcached)
			found := map[string]string{}
			for _, condition := range computed {
				found[condition.Type] = string(condition.Status) + " " + condition.Reason
				g.Expect(condition.Message).NotTo(BeEmpty())
			}
			want := map[string]string{
				cachev1alpha1.ConditionAvailable:   test.wantAvailable,
				cachev1alpha1.ConditionProgressing: test.wantProgressing, //workshop:step 4.12d
				cachev1alpha1.ConditionDegraded:    test.wantDegraded,    //workshop:step 4.12b
			}
			for kind, words := range want {
				g.Expect(found).To(HaveKeyWithValue(kind, words), "see conditions in status.go")
			}
			g.Expect(computed).To(HaveLen(len(found)), "no condition may occur twice")
			g.Expect(test.observed.requeueAfter()).To(BeZero(), "a watch event announces each change, see requeueAfter in status.go")
			//workshop:step 4.12c
			if test.wantDegraded == "True Stalled" {
				g.Expect(meta.FindStatusCondition(computed, cachev1alpha1.ConditionDegraded).Message).To(And(ContainSubstring("sessions"), ContainSubstring(late.Message)), "users need to know which Deployment makes no progress, and why, see problem in status.go")
			}
			//workshop:step 4.12d
			if blocker := test.observed.blocker; blocker != nil {
				g.Expect(computed).To(ContainElement(HaveField("Message", blocker.message)), "users need to know what blocks the child")
			}
		})
	}
}

// Reasons are part of the API, so each documented reason must be able to occur.
func TestEveryReasonIsUsed(t *testing.T) {
	g := NewWithT(t)
	found := map[string]bool{}
	for _, test := range conditionTests() {
		memcached := storedMemcached()
		memcached.Spec.Size = test.size
		for _, condition := range test.observed.conditions(memcached) {
			found[condition.Reason], found[condition.Type+" "+string(condition.Status)] = true, true
		}
	}
	g.Expect(declaredReasons(t)).NotTo(BeEmpty())
	for _, reason := range declaredReasons(t) {
		g.Expect(found).To(HaveKey(reason), "no case in conditionTests leads to this reason, which api/v1alpha1/memcached_types.go documents")
	}
	for _, kind := range []string{cachev1alpha1.ConditionAvailable, cachev1alpha1.ConditionProgressing, cachev1alpha1.ConditionDegraded} {
		g.Expect(found).To(And(HaveKey(kind+" True"), HaveKey(kind+" False")))
	}
}

func TestStalled(t *testing.T) {
	tests := map[string]struct {
		observed   int64
		conditions []appsv1.DeploymentCondition
		want       string
	}{
		"nothing is reported":                  {observed: 5},
		"the deadline is over":                 {observed: 5, conditions: []appsv1.DeploymentCondition{late}, want: "took too long"},
		"a former template's deadline is over": {observed: 4, conditions: []appsv1.DeploymentCondition{late}},
		"the rollout is going on":              {observed: 5, conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Message: "going on"}}},
		"the rollout is paused":                {observed: 5, conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionUnknown, Message: "paused"}}},
		"pods can't be created":                {observed: 5, conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "quota"}}, want: "quota"},
		"former pods could not be created":     {observed: 4, conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "quota"}}},
		"pods can be created again":            {observed: 5, conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionFalse, Message: "quota"}}},
		"too few pods are available":           {observed: 5, conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "minimum"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(stalled(foundDeployment(test.observed, test.conditions...))).To(Equal(test.want), "see stalled in status.go")
		})
	}
}

func TestNewStatus(t *testing.T) {
	g := NewWithT(t)
	memcached := storedMemcached()
	observed := observation{deployment: foundDeployment(5), pods: []corev1.Pod{storedPod("b"), unready(storedPod("starting")), storedPod("a")}}
	status := newStatus(memcached, observed)
	g.Expect(memcached).To(Equal(storedMemcached()), "the Memcached belongs to the cache and must not change")
	g.Expect(status.Nodes).To(Equal([]string{"a", "b"}))
	g.Expect(status.Replicas).To(BeEquivalentTo(3))
	g.Expect(status.ReadyReplicas).To(BeEquivalentTo(2))
	g.Expect(status.Selector).To(Equal("app.kubernetes.io/instance=sessions,app.kubernetes.io/managed-by=memcached-operator,app.kubernetes.io/name=memcached"))
	g.Expect(status.ObservedGeneration).To(BeEquivalentTo(3))
	g.Expect(status.Conditions).To(HaveEach(And(HaveField("ObservedGeneration", BeEquivalentTo(3)), HaveField("LastTransitionTime", Not(BeZero())))))
	g.Expect(status.Conditions).To(HaveLen(3)) //workshop:step 4.12d

	memcached.Status = *status
	status = newStatus(memcached, observation{blocker: &explanation{reason: cachev1alpha1.ReasonNameTaken, message: "taken"}})
	g.Expect(status.Nodes).To(BeEmpty(), "the names of former pods must not stay")
	g.Expect(status.Replicas).To(BeZero())
	g.Expect(status.ReadyReplicas).To(BeZero())
	g.Expect(meta.IsStatusConditionTrue(status.Conditions, cachev1alpha1.ConditionDegraded)).To(BeTrue()) //workshop:step 4.12b
	g.Expect(meta.IsStatusConditionFalse(status.Conditions, cachev1alpha1.ConditionAvailable)).To(BeTrue())
}

func TestNewStatusIsStable(t *testing.T) {
	g := NewWithT(t)
	memcached := storedMemcached()
	noon := metav1.NewTime(time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC))
	observed := observation{deployment: foundDeployment(5), pods: []corev1.Pod{storedPod("a"), storedPod("b")}}
	memcached.Status = *newStatus(memcached, observed)
	for i := range memcached.Status.Conditions {
		memcached.Status.Conditions[i].LastTransitionTime = noon
	}
	g.Expect(newStatus(memcached, observed)).To(HaveValue(Equal(memcached.Status)), "the same observation must not cause a write")

	audited := metav1.Condition{Type: "Audited", Status: metav1.ConditionTrue}
	memcached.Status.Conditions = append(memcached.Status.Conditions, audited)
	observed.pods = []corev1.Pod{storedPod("a"), unready(storedPod("b"))}
	status := newStatus(memcached, observed)
	g.Expect(status.Conditions).To(ContainElement(audited), "conditions of other controllers must stay")
	since := func(kind string) time.Time {
		condition := meta.FindStatusCondition(status.Conditions, kind)
		g.Expect(condition).NotTo(BeNil(), "the status needs the condition %s", kind)
		return condition.LastTransitionTime.Time
	}
	g.Expect(since(cachev1alpha1.ConditionAvailable)).To(BeTemporally(">", noon.Time), "the time must be that of the change from True to False")
	//workshop:step 4.12b
	g.Expect(since(cachev1alpha1.ConditionDegraded)).To(BeTemporally("==", noon.Time), "a condition whose status has not changed must keep its time")
}

func TestAnnounce(t *testing.T) {
	available := newCondition(cachev1alpha1.ConditionAvailable, true, cachev1alpha1.ReasonEnoughPods, "enough")
	unavailable := newCondition(cachev1alpha1.ConditionAvailable, false, cachev1alpha1.ReasonTooFewPods, "too few")
	rolling := newCondition(cachev1alpha1.ConditionProgressing, true, cachev1alpha1.ReasonRollingOut, "rolling")
	fine := degraded(nil)
	failing := degraded(&explanation{reason: cachev1alpha1.ReasonPodsFailing, message: "100% failing"})
	reworded := degraded(&explanation{reason: cachev1alpha1.ReasonPodsFailing, message: "another failure"})
	stuck := degraded(&explanation{reason: cachev1alpha1.ReasonStalled, message: "stuck"})
	tests := map[string]struct {
		before, after []metav1.Condition
		want          []string
	}{
		"a new Memcached has no pods yet":                    {after: []metav1.Condition{unavailable, rolling, fine}},
		"a new Memcached's pods fail":                        {after: []metav1.Condition{unavailable, failing}, want: []string{"Warning PodsFailing 100% failing"}},
		"a Memcached becomes available":                      {before: []metav1.Condition{unavailable, fine}, after: []metav1.Condition{available, fine}, want: []string{"Normal EnoughPods enough"}},
		"it stays available":                                 {before: []metav1.Condition{available, fine}, after: []metav1.Condition{available, rolling, fine}},
		"it is no longer available":                          {before: []metav1.Condition{available, fine}, after: []metav1.Condition{unavailable, fine}},
		"a problem stays, with another message":              {before: []metav1.Condition{unavailable, failing}, after: []metav1.Condition{unavailable, reworded}},
		"a problem follows another":                          {before: []metav1.Condition{unavailable, failing}, after: []metav1.Condition{unavailable, stuck}, want: []string{"Warning Stalled stuck"}},
		"a problem is solved":                                {before: []metav1.Condition{available, failing}, after: []metav1.Condition{available, fine}},
		"it becomes available and degraded at the same time": {before: []metav1.Condition{unavailable, fine}, after: []metav1.Condition{available, failing}, want: []string{"Normal EnoughPods enough", "Warning PodsFailing 100% failing"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			recorder := events.NewFakeRecorder(9)
			(&MemcachedReconciler{Recorder: recorder}).announce(storedMemcached(), test.before, test.after)
			close(recorder.Events)
			var found []string
			for event := range recorder.Events {
				found = append(found, event)
			}
			g.Expect(found).To(Equal(test.want), "see announce in memcached_controller.go")
		})
	}
}

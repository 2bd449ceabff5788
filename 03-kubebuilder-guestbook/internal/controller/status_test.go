//workshop:given 3.3a

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

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

// late is the condition of a Deployment whose rollout takes too long.
var late = appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: "took too long"}

func TestObservedCondition(t *testing.T) {
	ofOldRevision := func(pod corev1.Pod) corev1.Pod {
		pod.Annotations = map[string]string{revisionAnnotation: "former"}
		return pod
	}
	tests := map[string]struct {
		pods       []corev1.Pod
		deployment appsv1.DeploymentStatus
		wantReason string
	}{
		"all pods are ready and new":                           {pods: []corev1.Pod{storedPod("a", 1), storedPod("b", 2)}, wantReason: webappv1.ReasonAvailable},
		"all pods are ready, after the rollout was stuck":      {pods: []corev1.Pod{storedPod("a", 1), storedPod("b", 2)}, deployment: appsv1.DeploymentStatus{ObservedGeneration: 5, Conditions: []appsv1.DeploymentCondition{late}}, wantReason: webappv1.ReasonAvailable},
		"there are no pods":                                    {wantReason: webappv1.ReasonProgressing},
		"a pod is missing":                                     {pods: []corev1.Pod{storedPod("a", 1)}, wantReason: webappv1.ReasonProgressing},
		"a pod is not ready":                                   {pods: []corev1.Pod{storedPod("a", 1), unready(storedPod("b", 2))}, wantReason: webappv1.ReasonProgressing},
		"there is one pod too many":                            {pods: []corev1.Pod{storedPod("a", 1), storedPod("b", 2), storedPod("c", 3)}, wantReason: webappv1.ReasonProgressing},
		"there is one pod too many, which is not ready":        {pods: []corev1.Pod{storedPod("a", 1), storedPod("b", 2), unready(storedPod("c", 3))}, wantReason: webappv1.ReasonProgressing},
		"a pod has an old revision":                            {pods: []corev1.Pod{storedPod("a", 1), ofOldRevision(storedPod("b", 2))}, wantReason: webappv1.ReasonProgressing},
		"all pods have an old revision":                        {pods: []corev1.Pod{ofOldRevision(storedPod("a", 1)), ofOldRevision(storedPod("b", 2))}, wantReason: webappv1.ReasonProgressing},
		"a pod is missing, and the rollout is stuck":           {pods: []corev1.Pod{storedPod("a", 1)}, deployment: appsv1.DeploymentStatus{ObservedGeneration: 5, Conditions: []appsv1.DeploymentCondition{late}}, wantReason: webappv1.ReasonStalled},
		"a pod is missing, and the previous rollout was stuck": {pods: []corev1.Pod{storedPod("a", 1)}, deployment: appsv1.DeploymentStatus{ObservedGeneration: 4, Conditions: []appsv1.DeploymentCondition{late}}, wantReason: webappv1.ReasonProgressing},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			deployment := newDeployment(storedGuestbook())
			deployment.Generation, deployment.Status = 5, test.deployment
			ready := observedCondition(storedGuestbook(), deployment, test.pods)
			g.Expect(ready.Type).To(Equal(webappv1.ConditionReady), "see observedCondition in status.go")
			g.Expect(ready.Reason).To(Equal(test.wantReason), "see observedCondition in status.go")
			isTrue := ready.Status == metav1.ConditionTrue
			g.Expect(isTrue).To(Equal(test.wantReason == webappv1.ReasonAvailable))
			g.Expect(ready.Message).NotTo(BeEmpty())
			g.Expect(ready.Message).NotTo(MatchRegexp("[0-9]"), "the message needs no numbers: replicas and readyReplicas are in the status, see observedCondition in status.go")
		})
	}
}

func TestStalled(t *testing.T) {
	tests := map[string]struct {
		observed   int64
		conditions []appsv1.DeploymentCondition
		want       string
	}{
		"nothing is reported":                               {observed: 5},
		"the deadline has passed":                           {observed: 5, conditions: []appsv1.DeploymentCondition{late}, want: "took too long"},
		"the deadline has passed for the previous template": {observed: 4, conditions: []appsv1.DeploymentCondition{late}},
		"the rollout is progressing":                        {observed: 5, conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Message: "going on"}}},
		"pods can't be created":                             {observed: 5, conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "quota"}}, want: "quota"},
		"pods can be created again":                         {observed: 5, conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionFalse, Message: "quota"}}},
		"too few pods are available":                        {observed: 5, conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "minimum"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			deployment := newDeployment(storedGuestbook())
			deployment.Generation = 5
			deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: test.observed, Conditions: test.conditions}
			g.Expect(stalled(deployment)).To(Equal(test.want), "see stalled in status.go")
		})
	}
}

func TestNewStatus(t *testing.T) {
	g := NewWithT(t)
	guestbook := storedGuestbook()
	pods := []corev1.Pod{storedPod("late", 9), storedPod("first", 1), unready(storedPod("starting", 2)), storedPod("second", 5)}
	available := newCondition(metav1.ConditionTrue, webappv1.ReasonAvailable, "all there")
	status := newStatus(guestbook, pods, available)
	g.Expect(status).NotTo(BeNil(), "see newStatus in status.go")
	g.Expect(guestbook).To(Equal(storedGuestbook()), "newStatus must not change the Guestbook")
	g.Expect(status.Active).To(Equal("first"), "see newStatus in status.go")
	g.Expect(status.Standby).To(Equal([]string{"second", "late"}), "see newStatus in status.go")
	g.Expect(status.Replicas).To(BeEquivalentTo(4), "see newStatus in status.go")
	g.Expect(status.ReadyReplicas).To(BeEquivalentTo(3), "see newStatus in status.go")
	g.Expect(status.Selector).To(Equal("app.kubernetes.io/instance=web,app.kubernetes.io/managed-by=guestbook-controller,app.kubernetes.io/name=guestbook"))
	g.Expect(status.ObservedGeneration).To(BeEquivalentTo(3), "see newStatus in status.go")
	g.Expect(status.Conditions).To(ConsistOf(And(
		HaveField("Reason", webappv1.ReasonAvailable), HaveField("ObservedGeneration", BeEquivalentTo(3)), HaveField("LastTransitionTime", Not(BeZero())))),
		"the condition needs the observedGeneration, too, see newStatus in status.go")

	guestbook.Status = *status
	before := guestbook.DeepCopy()
	status = newStatus(guestbook, nil, newCondition(metav1.ConditionFalse, webappv1.ReasonConfigMapNotFound, "no settings"))
	g.Expect(guestbook).To(Equal(before), "newStatus in status.go must change a deep copy: a copy by = shares the conditions, so the status seems never to differ")
	g.Expect(status.Active).To(BeEmpty(), "Active of the previous status must not stay, see newStatus in status.go")
	g.Expect(status.Standby).To(BeNil(), "Standby of the previous status must not stay, see newStatus in status.go")
	g.Expect(status.Replicas).To(BeZero(), "see newStatus in status.go")
	g.Expect(status.ReadyReplicas).To(BeZero(), "see newStatus in status.go")
	g.Expect(status.Conditions).To(ConsistOf(And(
		HaveField("Status", metav1.ConditionFalse), HaveField("Reason", webappv1.ReasonConfigMapNotFound), HaveField("Message", "no settings"))))
}

func TestNewStatusIsStable(t *testing.T) {
	g := NewWithT(t)
	guestbook := storedGuestbook()
	pods := []corev1.Pod{storedPod("a", 1), storedPod("b", 2)}
	available := newCondition(metav1.ConditionTrue, webappv1.ReasonAvailable, "all there")
	status := newStatus(guestbook, pods, available)
	g.Expect(status).To(HaveField("Conditions", HaveLen(1)), "see newStatus in status.go")
	guestbook.Status = *status
	guestbook.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon)
	g.Expect(newStatus(guestbook, pods, available)).To(HaveValue(Equal(guestbook.Status)), "the same observation must not cause a write")

	audited := metav1.Condition{Type: "Audited", Status: metav1.ConditionTrue}
	guestbook.Status.Conditions = append(guestbook.Status.Conditions, audited)
	status = newStatus(guestbook, pods, newCondition(metav1.ConditionFalse, webappv1.ReasonProgressing, "rolling"))
	g.Expect(status.Conditions).To(ContainElement(audited), "conditions of other controllers must stay")
	ready := meta.FindStatusCondition(status.Conditions, webappv1.ConditionReady)
	g.Expect(ready.LastTransitionTime.After(noon.Add(time.Hour))).To(BeTrue(), "the time must be that of the change from True to False")
}

func TestAnnounce(t *testing.T) {
	available := newCondition(metav1.ConditionTrue, webappv1.ReasonAvailable, "all there")
	progressing := newCondition(metav1.ConditionFalse, webappv1.ReasonProgressing, "rolling")
	missing := newCondition(metav1.ConditionFalse, webappv1.ReasonConfigMapNotFound, "100% missing")
	taken := newCondition(metav1.ConditionFalse, webappv1.ReasonDeploymentTaken, "taken")
	renamed := missing
	renamed.Message = "another one is missing"
	tests := map[string]struct {
		before []metav1.Condition
		after  metav1.Condition
		// want is the expected Event, or "" if there must be none.
		want string
	}{
		"a new Guestbook is progressing":                     {after: progressing},
		"a new Guestbook has no settings":                    {after: missing, want: "Warning ConfigMapNotFound 100% missing"},
		"a Guestbook becomes ready":                          {before: []metav1.Condition{progressing}, after: available, want: "Normal Available all there"},
		"a ready Guestbook stays ready":                      {before: []metav1.Condition{available}, after: available},
		"a ready Guestbook replaces its pods":                {before: []metav1.Condition{available}, after: progressing},
		"a problem stays, with another message":              {before: []metav1.Condition{missing}, after: renamed},
		"a problem follows another":                          {before: []metav1.Condition{missing}, after: taken, want: "Warning DeploymentTaken taken"},
		"a problem is being solved":                          {before: []metav1.Condition{taken}, after: progressing},
		"another controller's condition has the same reason": {before: []metav1.Condition{{Type: "Audited", Reason: webappv1.ReasonAvailable}}, after: available, want: "Normal Available all there"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			recorder := events.NewFakeRecorder(1)
			(&GuestbookReconciler{Recorder: recorder}).announce(storedGuestbook(), test.before, test.after)
			if test.want == "" {
				g.Expect(recorder.Events).To(BeEmpty(), "see announce in guestbook_controller.go")
				return
			}
			g.Expect(recorder.Events).NotTo(BeEmpty(), "%q must be recorded as an event, see announce in guestbook_controller.go", test.want)
			g.Expect(recorder.Events).To(Receive(Equal(test.want)))
		})
	}
}

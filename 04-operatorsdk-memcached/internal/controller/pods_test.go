package controller

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// storedPod returns a ready pod of storedMemcached.
func storedPod(name string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: "uid-of-pod", ResourceVersion: "40",
			Labels:      selectorLabels(storedMemcached()),
			Annotations: map[string]string{revisionAnnotation: newRevision(storedMemcached(), DefaultImage)},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: containerName, Ready: true}},
		},
	}
}

func unready(pod corev1.Pod) corev1.Pod {
	pod = *pod.DeepCopy()
	pod.Status.Conditions[1].Status = corev1.ConditionFalse
	return pod
}

func ofOldRevision(pod corev1.Pod) corev1.Pod {
	pod.Annotations = map[string]string{revisionAnnotation: "former"}
	return pod
}

// waiting returns a copy of the pod, changed so that its container is waiting, with the given reason, and the pod is
// not ready.
func waiting(pod corev1.Pod, reason string) corev1.Pod {
	pod = *pod.DeepCopy()
	pod.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: "back-off 5m0s"}
	return unready(pod)
}

func TestPodsOf(t *testing.T) {
	g := NewWithT(t)
	pods := func() []corev1.Pod {
		running, ending := storedPod("running"), storedPod("ending")
		return []corev1.Pod{running, *terminating(&ending)}
	}
	g.Expect(podsOf(ownedDeployment(), pods())).To(ConsistOf(HaveField("Name", "running")), "see podsOf in pods.go")
	g.Expect(podsOf(nil, pods())).To(BeEmpty(), "without a Deployment, the pods may be someone else's, see podsOf in pods.go")
}

func TestReadyNames(t *testing.T) {
	starting := storedPod("starting")
	starting.Status.Conditions = nil
	tests := map[string]struct {
		pods []corev1.Pod
		want []string
	}{
		"there are no pods":                              {},
		"the names are sorted":                           {pods: []corev1.Pod{storedPod("b"), storedPod("c"), storedPod("a")}, want: []string{"a", "b", "c"}},
		"a pod that is not ready is not named":           {pods: []corev1.Pod{unready(storedPod("a")), storedPod("b")}, want: []string{"b"}},
		"a pod without the condition is not named":       {pods: []corev1.Pod{starting, storedPod("b")}, want: []string{"b"}},
		"no pod is ready":                                {pods: []corev1.Pod{starting, unready(storedPod("b"))}},
		"a pod of a former revision serves clients, too": {pods: []corev1.Pod{ofOldRevision(storedPod("a"))}, want: []string{"a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := slices.Clone(test.pods)
			g.Expect(readyNames(test.pods)).To(HaveExactElements(test.want), "see readyNames in pods.go")
			g.Expect(test.pods).To(Equal(before), "the caller's list must stay as it is")
			slices.Reverse(test.pods)
			g.Expect(readyNames(test.pods)).To(HaveExactElements(test.want), "the order in which the cache lists the pods must not matter")
		})
	}
}

// TestFailure checks the message for each of the kubelet's reasons that count as a failure, and for some that don't.
// The test has its own list of reasons, so that it notices a reason that is missing from the map failures.
func TestFailure(t *testing.T) {
	const again, pull = "its container keeps crashing", "its image can't be pulled"
	const start, made = "its container can't be started", "its container can't be created"
	tests := map[string]string{
		"CrashLoopBackOff": again, "RunContainerError": start,
		"CreateContainerError": made, "CreateContainerConfigError": made,
		"InvalidImageName": pull, "ErrImagePull": pull, "ImagePullBackOff": pull, "ErrImageNeverPull": pull,
		"ContainerCreating": "", "PodInitializing": "", "": "",
	}
	for reason, want := range tests {
		t.Run("waiting for "+reason, func(t *testing.T) {
			g := NewWithT(t)
			pod := waiting(storedPod("a"), reason)
			g.Expect(failureOf(&pod)).To(Equal(podFailure{message: want}), "see failures in pods.go")
		})
	}
	for reason := range failures {
		NewWithT(t).Expect(tests).To(HaveKey(reason), "the test must have an entry for each reason in failures")
	}
}

func TestOnlyTheMemcachedContainerCanFail(t *testing.T) {
	g := NewWithT(t)
	pod := storedPod("a")
	g.Expect(failureOf(&pod)).To(BeZero(), "a running pod must not count as failing")
	pod.Status.ContainerStatuses = nil
	g.Expect(failureOf(&pod)).To(BeZero(), "a pod without the status of a container must not count as failing")
	exporter := waiting(storedPod("a"), "CrashLoopBackOff").Status.ContainerStatuses[0]
	exporter.Name = "exporter"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{exporter, {Name: containerName, Ready: true}}
	g.Expect(failureOf(&pod)).To(BeZero(), "a failing sidecar is not the operator's concern")
	pod = waiting(storedPod("a"), "CrashLoopBackOff")
	pod.Status.ContainerStatuses = append([]corev1.ContainerStatus{{Name: "exporter", Ready: true}}, pod.Status.ContainerStatuses...)
	g.Expect(failureOf(&pod)).NotTo(BeZero(), "memcached need not be the first container")
}

// noon is the time in these tests.
var noon = time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)

func TestFailureBetweenCrashes(t *testing.T) {
	tests := map[string]struct {
		pod  corev1.Pod
		want podFailure
	}{
		"it has crashed once, and is not ready yet":     {pod: crashed(storedPod("a"), 1, noon)},
		"it has crashed twice, and is not ready":        {pod: crashed(storedPod("a"), 2, noon), want: podFailure{message: crashing, until: noon.Add(10 * time.Minute)}},
		"it has crashed twice, and waits for a restart": {pod: waiting(crashed(storedPod("a"), 2, noon), "CrashLoopBackOff"), want: podFailure{message: crashing}},
		"its next image can't be pulled":                {pod: waiting(crashed(storedPod("a"), 2, noon), "ErrImagePull"), want: podFailure{message: failures["ErrImagePull"]}},
		"it has recovered": {pod: func() corev1.Pod {
			pod := crashed(storedPod("a"), 9, noon)
			pod.Status.ContainerStatuses[0].Ready = true
			return pod
		}()},
		"the time of its last exit is unknown": {pod: func() corev1.Pod {
			pod := crashed(storedPod("a"), 9, noon)
			pod.Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{}
			return pod
		}()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(failureOf(&test.pod)).To(Equal(test.want), "see failureOf in pods.go")
		})
	}
}

// crashed returns the pod after its container has exited; the container runs again and is not ready.
func crashed(pod corev1.Pod, restarts int32, ended time.Time) corev1.Pod {
	pod = unready(pod)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: containerName, RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(ended)}},
	}}
	return pod
}

// unscheduled returns the pod before it has a node: since the given time, the scheduler has found none that it fits on.
func unscheduled(pod corev1.Pod, since time.Time) corev1.Pod {
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/2 nodes are available", LastTransitionTime: metav1.NewTime(since),
	}}}
	return pod
}

func TestFailureOfAPodWithoutANode(t *testing.T) {
	changed := func(change func(*corev1.PodCondition)) corev1.Pod {
		pod := unscheduled(storedPod("a"), noon)
		change(&pod.Status.Conditions[0])
		return pod
	}
	tests := map[string]struct {
		pod  corev1.Pod
		want podFailure
	}{
		"it fits on no node":                  {pod: unscheduled(storedPod("a"), noon), want: podFailure{message: unschedulable, from: noon.Add(5 * time.Minute)}},
		"it has a node":                       {pod: storedPod("a")},
		"it fits on a node now":               {pod: changed(func(condition *corev1.PodCondition) { condition.Status = corev1.ConditionTrue })},
		"it must not be scheduled yet":        {pod: changed(func(condition *corev1.PodCondition) { condition.Reason = corev1.PodReasonSchedulingGated })},
		"another condition names this reason": {pod: changed(func(condition *corev1.PodCondition) { condition.Type = "example.com/Quota" })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(failureOf(&test.pod)).To(Equal(test.want), "see failureOf in pods.go")
		})
	}
}

func TestFailureAmong(t *testing.T) {
	const pull, again, room = "its image can't be pulled", "its container keeps crashing", "it fits on no node"
	revision := newRevision(storedMemcached(), DefaultImage)
	minutesAgo := func(name string, minutes time.Duration) corev1.Pod {
		return crashed(storedPod(name), 2, noon.Add(-minutes*time.Minute))
	}
	waitsFor := func(name string, minutes time.Duration) corev1.Pod {
		return unscheduled(storedPod(name), noon.Add(-minutes*time.Minute))
	}
	tests := map[string]struct {
		pods []corev1.Pod
		want string
		// wantLook is the requeueAfter that failureAmong must return.
		wantLook time.Duration
	}{
		"there are no pods":                             {},
		"all pods run":                                  {pods: []corev1.Pod{storedPod("a"), unready(storedPod("b"))}},
		"one pod fails":                                 {pods: []corev1.Pod{storedPod("a"), waiting(storedPod("b"), "ErrImagePull")}, want: pull},
		"a pod of a former revision fails":              {pods: []corev1.Pod{storedPod("a"), ofOldRevision(waiting(storedPod("b"), "ErrImagePull"))}},
		"pods fail for two reasons":                     {pods: []corev1.Pod{waiting(storedPod("a"), "ErrImagePull"), waiting(storedPod("b"), "CrashLoopBackOff")}, want: again},
		"the kubelet's reasons alternate":               {pods: []corev1.Pod{waiting(storedPod("a"), "ErrImagePull"), waiting(storedPod("b"), "ImagePullBackOff")}, want: pull},
		"a failing pod has no revision":                 {pods: []corev1.Pod{{Status: waiting(storedPod("a"), "ErrImagePull").Status}}},
		"a pod crashed last month":                      {pods: []corev1.Pod{minutesAgo("a", 43200)}},
		"a pod crashed ten minutes ago":                 {pods: []corev1.Pod{minutesAgo("a", 10)}},
		"a pod crashed recently":                        {pods: []corev1.Pod{minutesAgo("a", 9)}, want: again, wantLook: time.Minute},
		"two pods crashed recently":                     {pods: []corev1.Pod{minutesAgo("a", 2), minutesAgo("b", 6)}, want: again, wantLook: 4 * time.Minute},
		"a pod of a former revision crashed":            {pods: []corev1.Pod{ofOldRevision(minutesAgo("a", 9))}},
		"a pod has been unschedulable for a minute":     {pods: []corev1.Pod{storedPod("a"), waitsFor("b", 1)}, wantLook: 4 * time.Minute},
		"a pod has been unschedulable for five minutes": {pods: []corev1.Pod{storedPod("a"), waitsFor("b", 5)}, want: room},
		"two pods fit on no node":                       {pods: []corev1.Pod{waitsFor("a", 6), waitsFor("b", 2)}, want: room, wantLook: 3 * time.Minute},
		"a pod of a former revision fits on no node":    {pods: []corev1.Pod{ofOldRevision(waitsFor("a", 2)), ofOldRevision(waitsFor("b", 9))}},
		"one crashed recently, another fits nowhere":    {pods: []corev1.Pod{minutesAgo("a", 9), waitsFor("b", 2)}, want: again, wantLook: time.Minute},
		"one crashed recently, another fails for good":  {pods: []corev1.Pod{minutesAgo("a", 9), waiting(storedPod("b"), "ErrImagePull")}, want: again, wantLook: time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			message, requeueAfter := failureAmong(test.pods, revision, noon)
			g.Expect(message).To(Equal(test.want), "see failureAmong in pods.go")
			g.Expect(requeueAfter).To(Equal(test.wantLook))
			slices.Reverse(test.pods)
			message, requeueAfter = failureAmong(test.pods, revision, noon)
			g.Expect(message).To(Equal(test.want), "the order in which the cache lists the pods must not matter")
			g.Expect(requeueAfter).To(Equal(test.wantLook))
		})
	}
}

func TestIsTerminating(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"it runs":             {change: func(*corev1.Pod) {}},
		"it waits":            {change: func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending }},
		"it is not ready":     {change: func(pod *corev1.Pod) { *pod = unready(*pod) }},
		"it is being deleted": {change: func(pod *corev1.Pod) { pod.DeletionTimestamp = &now }, want: true},
		"it has succeeded":    {change: func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }, want: true},
		"it was evicted":      {change: func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := storedPod("a")
			test.change(&pod)
			g.Expect(isTerminating(&pod)).To(Equal(test.want), "see isTerminating in pods.go")
		})
	}
}

func TestKeepEssentials(t *testing.T) {
	now := metav1.Now()
	tests := map[string]func(*corev1.Pod){
		"a ready pod":                 func(*corev1.Pod) {},
		"a pod that is not ready":     func(pod *corev1.Pod) { *pod = unready(*pod) },
		"a pod that fails":            func(pod *corev1.Pod) { *pod = waiting(*pod, "CrashLoopBackOff") },
		"a pod that crashes":          func(pod *corev1.Pod) { *pod = crashed(*pod, 2, noon) },
		"a pod that waits":            func(pod *corev1.Pod) { *pod = waiting(*pod, "ContainerCreating") },
		"a pod that fits on no node":  func(pod *corev1.Pod) { pod.Status = unscheduled(*pod, noon).Status },
		"a pod without conditions":    func(pod *corev1.Pod) { pod.Status.Conditions = nil },
		"a pod without annotations":   func(pod *corev1.Pod) { pod.Annotations = nil },
		"an evicted pod":              func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed },
		"a pod that is being deleted": func(pod *corev1.Pod) { pod.DeletionTimestamp, pod.Finalizers = &now, []string{"example.com/hold"} },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := detailedPod()
			change(pod)
			whole := pod.DeepCopy()

			transformed, err := keepEssentials(pod)

			g.Expect(err).NotTo(HaveOccurred())
			kept, isPod := transformed.(*corev1.Pod)
			g.Expect(isPod).To(BeTrue())
			g.Expect(kept.Namespace+"/"+kept.Name).To(Equal("shop/sessions-1"), "the namespace and the name must stay, because they are the key in the cache")
			g.Expect(kept.ResourceVersion).To(Equal(whole.ResourceVersion), "the informer compares versions")
			g.Expect(isTerminating(kept)).To(Equal(isTerminating(whole)))
			g.Expect(isReady(kept)).To(Equal(isReady(whole)))
			g.Expect(failureOf(kept)).To(Equal(failureOf(whole)))
			g.Expect(revisionOf(kept)).To(Equal(revisionOf(whole)))
			g.Expect(labels.SelectorFromSet(selectorLabels(storedMemcached())).Matches(labels.Set(kept.Labels))).To(BeTrue())
			g.Expect(memcachedOf(t.Context(), kept)).To(Equal(memcachedOf(t.Context(), whole)))

			g.Expect(kept.Spec).To(BeZero(), "nothing reads the spec")
			g.Expect(kept.ManagedFields).To(BeEmpty())
			g.Expect(kept.OwnerReferences).To(BeEmpty())
			g.Expect(kept.Finalizers).To(BeEmpty())
			g.Expect(kept.Annotations).NotTo(HaveKey("note"))
			g.Expect(kept.Status.PodIP).To(BeEmpty())
			g.Expect(len(kept.Status.Conditions)).To(BeNumerically("<=", 1), "the operator reads only Ready and, from a pod without a node, PodScheduled")
			g.Expect(kept.Status.Conditions).NotTo(ContainElement(HaveField("Message", Not(BeEmpty()))), "no condition's message is read")
			for _, status := range kept.Status.ContainerStatuses {
				g.Expect(status.State.Running).To(BeNil(), "only the state Waiting is read")
				g.Expect(status.State.Waiting).To(Or(BeNil(), HaveField("Message", BeEmpty())), "of the state Waiting, only the reason is read")
			}

			again, err := keepEssentials(kept.DeepCopy())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again).To(Equal(kept), "the informer may pass the result in again")
		})
	}
}

func TestKeepEssentialsLeavesOtherKindsAlone(t *testing.T) {
	g := NewWithT(t)
	g.Expect(keepEssentials(newService(storedMemcached()))).To(Equal(newService(storedMemcached())))
}

// detailedPod returns a ready pod with more fields than the operator reads.
func detailedPod() *corev1.Pod {
	pod := storedPod("sessions-1")
	pod.Annotations["note"] = "of a user"
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "sessions"}}
	pod.Spec.NodeName = "node-1"
	pod.Status.PodIP = "10.0.0.1"
	return &pod
}

//workshop:given 3.3a

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

// noon is the time from which the tests count.
var noon = time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)

// storedPod returns a pod of storedGuestbook that became ready readySince seconds after noon.
func storedPod(name string, readySince int) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: "uid-of-pod", ResourceVersion: "40",
			Labels:      selectorLabels(storedGuestbook()),
			Annotations: map[string]string{revisionAnnotation: "present"},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(time.Duration(readySince) * time.Second))},
		}},
	}
}

func unready(pod corev1.Pod) corev1.Pod {
	pod.Status.Conditions[1].Status = corev1.ConditionFalse
	return pod
}

func TestReadyNames(t *testing.T) {
	starting := storedPod("starting", 0)
	starting.Status.Conditions = nil
	tests := map[string]struct {
		pods []corev1.Pod
		want []string
	}{
		"there are no pods":                                            {},
		"the pod that was ready first comes first":                     {pods: []corev1.Pod{storedPod("a", 9), storedPod("b", 3), storedPod("c", 6)}, want: []string{"b", "c", "a"}},
		"pods that became ready in the same second are sorted by name": {pods: []corev1.Pod{storedPod("c", 3), storedPod("a", 3), storedPod("b", 3)}, want: []string{"a", "b", "c"}},
		"a pod that is not ready is left out":                          {pods: []corev1.Pod{unready(storedPod("a", 1)), storedPod("b", 2)}, want: []string{"b"}},
		"a pod without the condition is left out":                      {pods: []corev1.Pod{starting, storedPod("b", 2)}, want: []string{"b"}},
		"no pod is ready":                                              {pods: []corev1.Pod{starting, unready(storedPod("b", 2))}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(readyNames(test.pods)).To(HaveExactElements(test.want), "see readyNames in pods.go")
			slices.Reverse(test.pods)
			reversed := slices.Clone(test.pods)
			g.Expect(readyNames(test.pods)).To(HaveExactElements(test.want), "the order in which the cache lists the pods must not matter")
			g.Expect(test.pods).To(Equal(reversed), "readyNames must not change the caller's list")
		})
	}
}

func TestIsTerminating(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"it is running":       {change: func(*corev1.Pod) {}},
		"it is pending":       {change: func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending }},
		"it is not ready":     {change: func(pod *corev1.Pod) { *pod = unready(*pod) }},
		"it is being deleted": {change: func(pod *corev1.Pod) { pod.DeletionTimestamp = &now }, want: true},
		"it has succeeded":    {change: func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }, want: true},
		"it was evicted":      {change: func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := storedPod("a", 1)
			test.change(&pod)
			g.Expect(isTerminating(&pod)).To(Equal(test.want), "see isTerminating in pods.go")
		})
	}
}

func TestKeepReadiness(t *testing.T) {
	now := metav1.NewTime(noon)
	tests := map[string]func(*corev1.Pod){
		"a ready pod":                 func(*corev1.Pod) {},
		"a pod that is not ready":     func(pod *corev1.Pod) { *pod = unready(*pod) },
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

			transformed, err := keepReadiness(pod)

			g.Expect(err).NotTo(HaveOccurred())
			kept, isPod := transformed.(*corev1.Pod)
			g.Expect(isPod).To(BeTrue(), "keepReadiness in pods.go must return a pod")
			g.Expect(kept.Namespace+"/"+kept.Name).To(Equal("shop/web-1"), "the cache needs the namespace and the name as its key")
			g.Expect(kept.ResourceVersion).To(Equal(whole.ResourceVersion), "the informer compares versions")
			g.Expect(isTerminating(kept)).To(Equal(isTerminating(whole)))
			g.Expect(isReady(kept)).To(Equal(isReady(whole)))
			g.Expect(readySince(kept)).To(Equal(readySince(whole)))
			g.Expect(revisionOf(kept)).To(Equal(revisionOf(whole)))
			g.Expect(labels.SelectorFromSet(selectorLabels(storedGuestbook())).Matches(labels.Set(kept.Labels))).To(BeTrue())
			g.Expect(guestbookOf(t.Context(), kept)).To(Equal(guestbookOf(t.Context(), whole)))

			g.Expect(kept.Spec).To(BeZero(), "the controller does not read the spec")
			g.Expect(kept.ManagedFields).To(BeEmpty())
			g.Expect(kept.OwnerReferences).To(BeEmpty())
			g.Expect(kept.Annotations).NotTo(HaveKey("note"))
			g.Expect(len(kept.Status.Conditions)).To(BeNumerically("<=", 1), "the controller reads only one condition")
			g.Expect(kept.Status.ContainerStatuses).To(BeEmpty())

			again, err := keepReadiness(kept.DeepCopy())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again).To(Equal(kept), "the informer may call the transform again with its result")
		})
	}
}

func TestKeepReadinessLeavesOthersAlone(t *testing.T) {
	g := NewWithT(t)
	g.Expect(keepReadiness(storedSettings())).To(Equal(storedSettings()))
}

// detailedPod returns a ready pod that also has fields which the controller does not read.
func detailedPod() *corev1.Pod {
	pod := storedPod("web-1", 1)
	pod.Annotations["note"] = "of a user"
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web"}}
	pod.Spec.NodeName = "node-1"
	pod.Status.PodIP = "10.0.0.1"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, Ready: true}}
	return &pod
}

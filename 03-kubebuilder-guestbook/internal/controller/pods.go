package controller

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readyNames returns the names of the ready pods, longest ready first. The order depends only on
// the pods, so it is the same in every replica of the controller, and after each restart. The API
// records times in whole seconds. If pods became ready in the same second, their names decide.
//
//workshop:step 3.5l
func readyNames(pods []corev1.Pod) []string {
	ready := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !isReady(&pod) })
	slices.SortFunc(ready, func(a, b corev1.Pod) int {
		return cmp.Or(readySince(&a).Compare(readySince(&b).Time), strings.Compare(a.Name, b.Name))
	})
	var names []string
	for _, pod := range ready {
		names = append(names, pod.Name)
	}
	return names
}

// isTerminating reports whether the pod is being deleted, or has finished already.
func isTerminating(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func isReady(pod *corev1.Pod) bool {
	condition := readyConditionOf(pod)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

func readySince(pod *corev1.Pod) metav1.Time {
	condition := readyConditionOf(pod)
	if condition == nil {
		return metav1.Time{}
	}
	return condition.LastTransitionTime
}

func readyConditionOf(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// keepReadiness is a cache transform: it keeps little more of a pod than this controller reads.
//
//workshop:step 3.7a
func keepReadiness(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := corev1.PodStatus{Phase: pod.Status.Phase}
	if condition := readyConditionOf(pod); condition != nil {
		kept.Conditions = []corev1.PodCondition{{
			Type: condition.Type, Status: condition.Status, LastTransitionTime: condition.LastTransitionTime,
		}}
	}
	revision := revisionOf(pod)
	pod.ManagedFields, pod.OwnerReferences, pod.Finalizers = nil, nil, nil
	pod.Annotations = map[string]string{revisionAnnotation: revision}
	pod.Spec, pod.Status = corev1.PodSpec{}, kept
	return pod, nil
}

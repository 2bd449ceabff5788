package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// listPods returns the Guestbook's pods without those that are ending.
func (r *GuestbookReconciler) listPods(ctx context.Context, guestbook *webappv1.Guestbook) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := r.List(ctx, pods, client.InNamespace(guestbook.Namespace), client.MatchingLabels(selectorLabels(guestbook)))
	if err != nil {
		return nil, fmt.Errorf("list the pods of Guestbook %s: %w", client.ObjectKeyFromObject(guestbook), err)
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return isEnding(&pod) }), nil
}

// readyNames returns the names of the ready pods, the one that has been ready
// for longest first. The rule depends on the pods alone, so that every replica
// of the controller, and each new start, names the same ones. A pod that becomes
// ready later comes after those that are; within one second, which is as fine as
// the API tells time, the names decide.
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

func isEnding(pod *corev1.Pod) bool {
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

// keepReadiness removes from a pod, on the way into the cache, what nothing here reads.
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

package behaviours

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/internal/trial"
)

func (r *gadgetReconciler) writeStatus(ctx context.Context, gadget *unstructured.Unstructured, refusal string) error {
	conditions, err := conditionList(gadget)
	if err != nil {
		return err
	}
	ready := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "ConfigMapMade", Message: "the ConfigMap is there",
		ObservedGeneration: gadget.GetGeneration(),
	}
	if r.flaw == tellsByCondition {
		ready.Message += ", and the password is " + password
	}
	if r.flaw == forgetsGeneration || r.flaw == observesInStatus {
		ready.ObservedGeneration = 0
	}
	if r.flaw == writesInSteps && len(conditions) == 0 {
		ready.Status, ready.Reason = metav1.ConditionFalse, "Working"
		meta.SetStatusCondition(&conditions, ready)
		if err := r.patchStatus(ctx, gadget, conditions); err != nil {
			return err
		}
		ready.Status, ready.Reason = metav1.ConditionTrue, "ConfigMapMade"
	}
	if refusal != "" && r.flaw == keepsStatus {
		return nil
	}
	if refusal != "" && r.flaw != claimsSuccess {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "ErrResourceExists", refusal
	}
	warn := refusal != "" && !meta.IsStatusConditionFalse(conditions, ready.Type)
	if r.flaw == stalls {
		meta.SetStatusCondition(&conditions, auditors[isStalled])
	}
	outdated := r.flaw == observesInStatus && observedGeneration(gadget) != gadget.GetGeneration()
	if !meta.SetStatusCondition(&conditions, ready) && r.flaw != writesAlways && r.flaw != warnsAlways && !outdated {
		return nil
	}
	if err := r.patchStatus(ctx, gadget, conditions); err != nil {
		return err
	}
	if warn && r.flaw != warnsNever || r.flaw == warnsAlways {
		r.recorder.Eventf(gadget, nil, corev1.EventTypeWarning, ready.Reason, "Reconcile", "%s", refusal)
	}
	if warn && r.flaw == warnsTwice {
		r.recorder.Eventf(gadget, nil, corev1.EventTypeWarning, "NameTaken", "Reconcile", "rename the gadget's ConfigMap: %s", refusal)
	}
	return nil
}

func (r *gadgetReconciler) patchStatus(ctx context.Context, gadget *unstructured.Unstructured, conditions []metav1.Condition) error {
	before := gadget.DeepCopy()
	if err := setStatus(gadget, conditions); err != nil {
		return err
	}
	switch r.flaw {
	case forgetsGeneration:
		unstructured.RemoveNestedField(gadget.Object, "status", "observedGeneration")
	case hasPhase:
		setPhase(gadget, conditions)
	}
	if r.flaw == patchesStatus {
		return client.IgnoreNotFound(r.Status().Patch(ctx, gadget, client.MergeFrom(before)))
	}
	// The cache may be older than the operator's last write; then the API server refuses this one.
	lock := client.MergeFromWithOptimisticLock{}
	return client.IgnoreNotFound(r.Status().Patch(ctx, gadget, client.MergeFromWithOptions(before, lock)))
}

// setStatus replaces the status of a Gadget or a Depot in memory, without a request to the API server. It also sorts
// the conditions by type.
func setStatus(gadget *unstructured.Unstructured, conditions []metav1.Condition) error {
	slices.SortFunc(conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	var list []any
	for i := range conditions {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			return err
		}
		list = append(list, content)
	}
	status := map[string]any{"observedGeneration": gadget.GetGeneration(), "conditions": list}
	return unstructured.SetNestedMap(gadget.Object, status, "status")
}

func conditionList(gadget *unstructured.Unstructured) ([]metav1.Condition, error) {
	byType, err := trial.ConditionsOf(gadget)
	var list []metav1.Condition
	for _, condition := range byType {
		list = append(list, condition)
	}
	return list, err
}

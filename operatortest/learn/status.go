package learn

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest/internal/trial"
)

// verdict is how a status says that the spec is met: with a condition, or with values that a CEL expression checks.
// If the status has neither, Condition and Expression are empty.
type verdict struct {
	Condition, Expression string
	// Observed means that the status says which generation it is about.
	Observed bool
}

// verdictOf reads the status of a resource on which the operator has finished its work.
func verdictOf(resource *unstructured.Unstructured) verdict {
	_, observed, _ := unstructured.NestedInt64(resource.Object, "status", "observedGeneration")
	// Ignore conditions that aren't metav1.Conditions: the kit can't wait for them.
	conditions, _ := trial.ConditionsOf(resource)
	types := append([]string{"Ready", "Available"}, slices.Sorted(maps.Keys(conditions))...)
	for _, name := range types {
		if condition := conditions[name]; condition.Status == metav1.ConditionTrue {
			return verdict{Condition: name, Observed: observed || condition.ObservedGeneration != 0}
		}
	}
	for _, name := range []string{"phase", "state"} {
		value, _, _ := unstructured.NestedString(resource.Object, "status", name)
		if value == "" {
			continue
		}
		made := verdict{Expression: fmt.Sprintf("object.status.%s == %s", name, strconv.Quote(value)), Observed: observed}
		if observed {
			made.Expression += " && object.status.observedGeneration == object.metadata.generation"
		}
		return made
	}
	return verdict{Observed: observed}
}

// unmet returns the conditions that are not True, with their messages.
func unmet(resource *unstructured.Unstructured) []string {
	conditions, _ := trial.ConditionsOf(resource)
	var found []string
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		if condition := conditions[name]; condition.Status != metav1.ConditionTrue {
			message, _, _ := strings.Cut(condition.Message, "\n")
			found = append(found, fmt.Sprintf("%s was %s, %s: %s", name, condition.Status, condition.Reason, message))
		}
	}
	return found
}

package trial

import (
	"context"
	"errors"
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/operatortest/internal/state"
)

// WaitGone waits until nothing is left of a deleted resource, except the retained children.
func (t *Trial) WaitGone(ctx context.Context, resource *unstructured.Unstructured, circumstances string) error {
	return t.Await(ctx, "the resource, its children and what belongs to it outside Kubernetes to be gone; "+circumstances, func(ctx context.Context) error {
		left := resource.DeepCopy()
		err := t.get(ctx, left)
		if err == nil {
			return fmt.Errorf("%s %s is still there, held by its finalizers %q", left.GetKind(), left.GetName(), left.GetFinalizers())
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("get %s: %w", resource.GetName(), err)
		}
		if err := t.stillKept(ctx); err != nil {
			return err
		}
		found, err := t.State(ctx)
		if err != nil {
			return err
		}
		if external, kept := found[state.External]; kept && external == "" {
			delete(found, state.External)
		}
		if difference := found.Difference(state.Snapshot{}); difference != "" {
			return fmt.Errorf("left behind:\n%s", difference)
		}
		return nil
	})
}

// Converge waits until the resource is in its desired state, and rereads it.
func (t *Trial) Converge(ctx context.Context, resource *unstructured.Unstructured) error {
	return t.Await(ctx, fmt.Sprintf("%s %s to converge", resource.GetKind(), resource.GetName()), func(ctx context.Context) error {
		return t.converged(ctx, resource)
	})
}

// ConvergeTo waits until the resource is in its desired state, and then until the namespace is in the wanted state. If
// the trial changes nothing after that, Try checks at its end that the state has lasted.
func (t *Trial) ConvergeTo(ctx context.Context, resource *unstructured.Unstructured, wanted state.Snapshot, what string) error {
	if err := t.Converge(ctx, resource); err != nil {
		return fmt.Errorf("waiting for %s:\n%w", what, err)
	}
	t.last = func(ctx context.Context) error {
		found, err := t.State(ctx)
		if err != nil {
			return err
		}
		if difference := found.Difference(wanted); difference != "" {
			return fmt.Errorf("another state (- is expected, + is found):\n%s", difference)
		}
		return nil
	}
	return t.Await(ctx, what, t.last)
}

// stays returns an error if the condition of the last ConvergeTo no longer holds once the trial's operators are at rest.
func (t *Trial) stays(ctx context.Context) error {
	if t.last == nil {
		return nil
	}
	for _, operator := range t.instances {
		if operator.Stopped {
			continue
		}
		if err := t.WaitAtRest(ctx, operator); err != nil {
			return err
		}
	}
	if err := t.last(ctx); err != nil {
		return fmt.Errorf("expected the trial's final state to last until the operator is at rest\nfound, when it was: %w", err)
	}
	return nil
}

// converged returns an error that says what is missing, or nil if the resource is in its desired state.
func (t *Trial) converged(ctx context.Context, resource *unstructured.Unstructured) error {
	if err := t.Get(ctx, resource); err != nil {
		return err
	}
	if err := t.Met(resource); err != nil {
		return err
	}
	return t.Complete(ctx, resource)
}

// Complete returns an error unless all children of the resource exist, and each of them has reached its own desired
// state or is a suspended Job.
func (t *Trial) Complete(ctx context.Context, resource *unstructured.Unstructured) error {
	for _, declared := range t.Operator.Children {
		child, err := t.Child(ctx, declared, resource)
		if err != nil {
			return err
		}
		if child == nil {
			continue
		}
		if isSuspendedJob(child) {
			continue
		}
		if err := current(child); err != nil {
			return err
		}
	}
	return nil
}

// isSuspendedJob reports whether the child is a Job that is suspended. kstatus reports a Job as InProgress while its
// status has no startTime, and a Job that is created suspended gets none until it is resumed.
func isSuspendedJob(child *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(child.Object, "spec", "suspend")
	return suspended && child.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "batch", Kind: "Job"}
}

// Met returns an error unless the status says that the current spec is met.
func (t *Trial) Met(resource *unstructured.Unstructured) error {
	if t.Operator.Converged != nil {
		return t.Operator.Converged(resource)
	}
	condition, err := t.presentCondition(resource)
	if err != nil {
		return err
	}
	if condition.Status != metav1.ConditionTrue {
		return fmt.Errorf("condition %s is %s, %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	if t.LeftOut(Kstatus) {
		return nil
	}
	return current(resource)
}

// Unmet returns an error unless the status says that the current spec is not met.
func (t *Trial) Unmet(ctx context.Context, resource *unstructured.Unstructured) error {
	if err := t.Get(ctx, resource); err != nil {
		return err
	}
	if t.Operator.Converged != nil {
		if t.Operator.Converged(resource) == nil {
			return errors.New("the status says that the spec is met")
		}
		return nil
	}
	condition, err := t.presentCondition(resource)
	if err != nil {
		return err
	}
	if condition.Status == metav1.ConditionTrue {
		return fmt.Errorf("condition %s is True", condition.Type)
	}
	return nil
}

// presentCondition returns the operator's condition, or an error if there is none or if it is about an older spec.
func (t *Trial) presentCondition(resource *unstructured.Unstructured) (metav1.Condition, error) {
	conditions, err := ConditionsOf(resource)
	if err != nil {
		return metav1.Condition{}, err
	}
	condition, found := conditions[t.Operator.Condition]
	if !found {
		return condition, fmt.Errorf("there is no condition %s yet", t.Operator.Condition)
	}
	return condition, observed(resource, condition)
}

// observed returns an error if the status says that it is about an older spec. It accepts a status that doesn't say which
// spec it is about: the behaviour "converges" reports that once, so other behaviours needn't repeat it.
func observed(resource *unstructured.Unstructured, condition metav1.Condition) error {
	generation := resource.GetGeneration()
	if seen, found, _ := unstructured.NestedInt64(resource.Object, "status", "observedGeneration"); found && seen != generation {
		return fmt.Errorf("status.observedGeneration is %d, not %d: the operator has not seen the last change of the spec yet", seen, generation)
	}
	if seen := condition.ObservedGeneration; seen != 0 && seen != generation {
		return fmt.Errorf("condition %s has observedGeneration %d, not %d: it is about an older spec", condition.Type, seen, generation)
	}
	return nil
}

// CheckObserved returns an error if nothing in a resource's status says which generation the operator's condition is
// about. It checks nothing if Operator.Converged is set.
func (t *Trial) CheckObserved(resource *unstructured.Unstructured) error {
	if t.Operator.Converged != nil {
		return nil
	}
	conditions, err := ConditionsOf(resource)
	if err != nil {
		return err
	}
	condition := conditions[t.Operator.Condition]
	if _, found, _ := unstructured.NestedInt64(resource.Object, "status", "observedGeneration"); found || condition.ObservedGeneration != 0 {
		return nil
	}
	return fmt.Errorf("expected observedGeneration in condition %s, or in the status\nfound neither, so clients can't tell whether the condition is about the current "+
		"spec or an older one: set it to metadata.generation", condition.Type)
}

// ConditionsOf returns the resource's conditions by type.
func ConditionsOf(resource *unstructured.Unstructured) (map[string]metav1.Condition, error) {
	var typed struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(resource.Object, &typed); err != nil {
		return nil, fmt.Errorf("status.conditions of %s %s don't have the form of metav1.Condition: %w", resource.GetKind(), resource.GetName(), err)
	}
	conditions := map[string]metav1.Condition{}
	for _, condition := range typed.Status.Conditions {
		conditions[condition.Type] = condition
	}
	return conditions, nil
}

// current returns an error unless kstatus reports the object as Current. Deployment tools such as Flux use kstatus to
// determine whether an object is fully reconciled.
func current(object *unstructured.Unstructured) error {
	result, err := status.Compute(object)
	if err != nil {
		return fmt.Errorf("kstatus of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if result.Status != status.CurrentStatus {
		return fmt.Errorf("%s %s is %s by kstatus, not Current: %s", object.GetKind(), object.GetName(), result.Status, result.Message)
	}
	return nil
}

package operatortest

import (
	"context"
	"errors"
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// converge waits until the resource is as it should be, and rereads it.
func (t *trial) converge(ctx context.Context, resource *unstructured.Unstructured) error {
	return t.eventually(ctx, fmt.Sprintf("%s %s to converge", resource.GetKind(), resource.GetName()), func(ctx context.Context) error {
		return t.converged(ctx, resource)
	})
}

// convergeTo waits until the namespace is in a state that was seen before.
func (t *trial) convergeTo(ctx context.Context, resource *unstructured.Unstructured, wanted state, what string) error {
	if err := t.converge(ctx, resource); err != nil {
		return fmt.Errorf("waiting for %s:\n%w", what, err)
	}
	return t.eventually(ctx, what, func(ctx context.Context) error {
		found, err := t.state(ctx)
		if err != nil {
			return err
		}
		if difference := found.difference(wanted); difference != "" {
			return fmt.Errorf("another state (- is expected, + is found):\n%s", difference)
		}
		return nil
	})
}

// converged returns an error that says what is missing.
func (t *trial) converged(ctx context.Context, resource *unstructured.Unstructured) error {
	if err := t.reread(ctx, resource); err != nil {
		return err
	}
	if err := t.met(resource); err != nil {
		return err
	}
	for _, declared := range t.operator.Children {
		child, err := t.child(ctx, declared, resource)
		if err != nil {
			return err
		}
		if child == nil {
			continue
		}
		if err := current(child); err != nil {
			return err
		}
	}
	return nil
}

// met reads what the resource's status says.
func (t *trial) met(resource *unstructured.Unstructured) error {
	conditions, err := conditionsOf(resource)
	if err != nil {
		return err
	}
	generation := resource.GetGeneration()
	if observed, found, _ := unstructured.NestedInt64(resource.Object, "status", "observedGeneration"); found && observed != generation {
		return fmt.Errorf("status.observedGeneration is %d, not %d: the last change of the spec is not seen yet", observed, generation)
	}
	for kind, condition := range conditions {
		if condition.ObservedGeneration != generation {
			return fmt.Errorf("condition %s has observedGeneration %d, not %d: it is about an older spec", kind, condition.ObservedGeneration, generation)
		}
	}
	wanted := t.operator.condition()
	condition, found := conditions[wanted]
	if !found {
		return fmt.Errorf("there is no condition %s yet", wanted)
	}
	if condition.Status != metav1.ConditionTrue {
		return fmt.Errorf("condition %s is %s, %s: %s", wanted, condition.Status, condition.Reason, condition.Message)
	}
	return current(resource)
}

// conditionsOf returns the resource's conditions by type.
func conditionsOf(resource *unstructured.Unstructured) (map[string]metav1.Condition, error) {
	var typed struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(resource.Object, &typed); err != nil {
		return nil, fmt.Errorf("status.conditions of %s %s are not of the usual form: %w", resource.GetKind(), resource.GetName(), err)
	}
	conditions := map[string]metav1.Condition{}
	for _, condition := range typed.Status.Conditions {
		conditions[condition.Type] = condition
	}
	return conditions, nil
}

// current asks kstatus, by which kubectl plugins and delivery tools tell whether an object is done.
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

// child gets a declared child, and nil if the resource should have none.
func (t *trial) child(ctx context.Context, declared Child, resource *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	name := declared.nameFor(resource)
	if name == "" {
		return nil, nil
	}
	child := &unstructured.Unstructured{}
	child.SetGroupVersionKind(declared.Kind)
	err := t.cluster.admin.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, child)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no %s %s yet", declared.Kind.Kind, name)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", declared.Kind.Kind, name, err)
	}
	if child.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s %s is being deleted", child.GetKind(), name)
	}
	if !metav1.IsControlledBy(child, resource) {
		return nil, fmt.Errorf("%s %s has no controller reference to this %s (with its UID): its owners are %v",
			child.GetKind(), name, resource.GetKind(), child.GetOwnerReferences())
	}
	return child, nil
}

// firstChild is the first declared child that the sample has, and nil if it has none.
func (l *lab) firstChild() *Child {
	for i := range l.operator.Children {
		if declared := &l.operator.Children[i]; declared.nameFor(l.sample) != "" {
			return declared
		}
	}
	return nil
}

// children are all declared ones that the resource should have, by their declarations.
func (t *trial) children(ctx context.Context, resource *unstructured.Unstructured, do func(Child, *unstructured.Unstructured) error) error {
	found := false
	for _, declared := range t.operator.Children {
		child, err := t.child(ctx, declared, resource)
		if err != nil {
			return err
		}
		if child == nil {
			continue
		}
		found = true
		if err := do(declared, child); err != nil {
			return fmt.Errorf("%s %s: %w", child.GetKind(), child.GetName(), err)
		}
	}
	if !found && len(t.operator.Children) > 0 {
		return errors.New("the sample has none of Operator.Children: take one that has")
	}
	return nil
}

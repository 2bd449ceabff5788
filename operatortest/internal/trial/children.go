package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/specgen"
)

// Child returns a declared child, or nil if the resource should have none. It returns an error if the child does not
// exist, is being deleted, or is not controlled by the resource, and if several objects match a child with a generated
// name. A child that needs no controller reference must not be controlled by another object.
func (t *Trial) Child(ctx context.Context, declared operatortest.Child, resource *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	name := declared.NameFor(resource)
	if name == "" {
		return nil, nil
	}
	if declared.Generated {
		return t.generatedChild(ctx, declared, resource)
	}
	child := t.named(declared, name)
	err := t.get(ctx, child)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no %s %s yet", declared.Kind.Kind, name)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", declared.Kind.Kind, name, err)
	}
	if child.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s %s is being deleted", child.GetKind(), name)
	}
	if t.IsChild(child, resource) {
		return child, nil
	}
	if !t.needsOwner(declared) {
		return nil, fmt.Errorf("%s %s belongs to someone else: its owners are %s", child.GetKind(), name, ownersOf(child))
	}
	return nil, fmt.Errorf("%s %s has no controller reference to this %s (with its UID): its owners are %s (if that is on purpose, see Child.Unowned and Child.Retained)",
		child.GetKind(), name, resource.GetKind(), ownersOf(child))
}

// ownersOf formats a child's owner references for display, as JSON.
func ownersOf(child *unstructured.Unstructured) string {
	references := child.GetOwnerReferences()
	if len(references) == 0 {
		return "[]"
	}
	return specgen.OneLine(references)
}

// named returns an object with the kind and the name of a declared child, and no content.
func (t *Trial) named(declared operatortest.Child, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(declared.Kind)
	made.SetNamespace(t.namespaceOf(declared.Kind))
	made.SetName(name)
	return made
}

func (t *Trial) generatedChild(ctx context.Context, declared operatortest.Child, resource *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	objects, err := t.List(ctx, declared.Kind)
	if err != nil {
		return nil, err
	}
	child, err := generatedIn(objects, declared, resource)
	if err != nil {
		return nil, err
	}
	if child.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s %s is being deleted", child.GetKind(), child.GetName())
	}
	return child, nil
}

// generatedIn returns the object that is the resource's declared child, whose name is generated. It returns an error if
// there is no such object, or more than one.
func generatedIn(objects []*unstructured.Unstructured, declared operatortest.Child, resource *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	var names []string
	for _, object := range objects {
		if metav1.IsControlledBy(object, resource) && hasLabels(object, declared) {
			found, names = append(found, object), append(names, object.GetName())
		}
	}
	switch len(found) {
	case 0:
		if len(declared.Labels) > 0 {
			return nil, fmt.Errorf("there is no %s yet with the labels %v that this %s controls, by its UID", declared.Kind.Kind, labels.Set(declared.Labels), resource.GetKind())
		}
		return nil, fmt.Errorf("there is no %s yet that this %s controls, by its UID", declared.Kind.Kind, resource.GetKind())
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("this %s controls %d objects of kind %s, but should control one: %s (if all of them are its children, tell them apart with Child.Labels)",
		resource.GetKind(), len(found), declared.Kind.Kind, strings.Join(names, ", "))
}

// FirstChild returns the first declared child that the sample has, or nil if it has none.
func (runner *Runner) FirstChild() *operatortest.Child {
	for i := range runner.Operator.Children {
		if declared := &runner.Operator.Children[i]; declared.NameFor(runner.Resource(nil)) != "" {
			return declared
		}
	}
	return nil
}

// Children calls do for each declared child that the resource should have. It returns an error if [Trial.Child]
// or do returns one, or if children are declared but the resource should have none of them.
func (t *Trial) Children(ctx context.Context, resource *unstructured.Unstructured, do func(operatortest.Child, *unstructured.Unstructured) error) error {
	found := false
	for _, declared := range t.Operator.Children {
		child, err := t.Child(ctx, declared, resource)
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
	if !found && len(t.Operator.Children) > 0 {
		return errors.New("the sample has none of Operator.Children: use a sample that has some")
	}
	return nil
}

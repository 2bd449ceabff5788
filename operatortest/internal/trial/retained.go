package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/operatortest"
)

// Most children have a controller reference to their resource: it identifies them, and because of it the garbage
// collector deletes them when the resource is deleted. The others are identified by their names.

// CheckChild returns an error if the fields of a declared child don't fit together.
func CheckChild(declared operatortest.Child) error {
	if len(declared.Labels) > 0 && !declared.Generated {
		return errors.New("labels are for a child whose name is generated: set Child.Generated, or remove them")
	}
	if declared.Generated && (declared.Unowned || declared.Retained) {
		return errors.New("a child with a generated name is identified by its controller reference, so Child.Unowned and Child.Retained are not possible")
	}
	return nil
}

// needsOwner reports whether a declared child must have a controller reference. A cluster-scoped child of a namespaced
// resource can't have one.
func (runner *Runner) needsOwner(declared operatortest.Child) bool {
	isAbove := runner.clusterScoped[declared.Kind] && !runner.IsClusterScoped()
	return !declared.Unowned && !declared.Retained && !isAbove
}

// IsChild reports whether an object is a resource's child: the resource controls it, or it has the name of a child
// that needs no controller reference, has no controller, and is not known to be someone else's.
func (t *Trial) IsChild(object, resource *unstructured.Unstructured) bool {
	if metav1.IsControlledBy(object, resource) {
		return true
	}
	if t.Foreign[object.GetUID()] || metav1.GetControllerOfNoCopy(object) != nil {
		return false
	}
	return slices.ContainsFunc(t.Operator.Children, func(declared operatortest.Child) bool {
		return declared.Kind == object.GroupVersionKind() && !t.needsOwner(declared) && declared.NameFor(resource) == object.GetName()
	})
}

// isOthersChild reports whether an object is the child of a resource that Prepare created, not the experiment.
func (t *Trial) isOthersChild(object *unstructured.Unstructured, resources []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(resources, func(resource *unstructured.Unstructured) bool {
		return t.Foreign[resource.GetUID()] && t.IsChild(object, resource)
	})
}

// retained identifies a retained child.
type retained struct {
	kind, name string
}

// retainedOf calls do for each retained child that a resource should have.
func (t *Trial) retainedOf(resource *unstructured.Unstructured, do func(declared operatortest.Child, name string) error) error {
	if resource.GroupVersionKind() != t.Sample.GroupVersionKind() {
		return nil
	}
	for _, declared := range t.Operator.Children {
		if name := declared.NameFor(resource); declared.Retained && name != "" {
			if err := do(declared, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteRetained notes which retained children a resource calls for. If a later spec no longer calls for them, they may
// stay.
func (t *Trial) noteRetained(resource *unstructured.Unstructured) {
	_ = t.retainedOf(resource, func(declared operatortest.Child, name string) error { // it returns no error
		t.retained[retained{declared.Kind.String(), name}] = true
		return nil
	})
}

// isLeft reports whether an object is a retained child that some resource called for earlier, but none calls for now.
func (t *Trial) isLeft(object *unstructured.Unstructured, resources []*unstructured.Unstructured) bool {
	return t.retained[retained{object.GroupVersionKind().String(), object.GetName()}] &&
		!slices.ContainsFunc(resources, func(resource *unstructured.Unstructured) bool { return t.IsChild(object, resource) })
}

// kept is a retained child that existed when its resource was deleted.
type kept struct {
	*unstructured.Unstructured
	owner types.UID
}

// noteKept notes which retained children of a resource exist, because the resource is about to be deleted.
func (t *Trial) noteKept(ctx context.Context, resource *unstructured.Unstructured) error {
	t.noteRetained(resource)
	return t.retainedOf(resource, func(declared operatortest.Child, name string) error {
		child := t.named(declared, name)
		err := t.get(ctx, child)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("get %s %s: %w", child.GetKind(), name, err)
		}
		if child.GetDeletionTimestamp() == nil && t.IsChild(child, resource) {
			t.kept = append(t.kept, kept{child, resource.GetUID()})
		}
		return nil
	})
}

// stillKept returns an error unless the retained children of all deleted resources still exist, and the garbage collector
// will leave them alone.
func (t *Trial) stillKept(ctx context.Context) error {
	for _, child := range t.kept {
		now := child.DeepCopy()
		err := t.get(ctx, now)
		switch {
		case apierrors.IsNotFound(err), err == nil && now.GetUID() != child.GetUID(), err == nil && now.GetDeletionTimestamp() != nil:
			return fmt.Errorf("%s %s, which must outlive its %s (Child.Retained), was deleted%s",
				child.GetKind(), child.GetName(), t.Sample.GetKind(), child.collected(child.Unstructured))
		case err != nil:
			return fmt.Errorf("get %s %s: %w", child.GetKind(), child.GetName(), err)
		}
		if reason := child.collected(now); reason != "" {
			return fmt.Errorf("%s %s, which must outlive its %s (Child.Retained), is about to be deleted%s",
				child.GetKind(), child.GetName(), t.Sample.GetKind(), reason)
		}
	}
	return nil
}

// collected returns why the garbage collector deletes the child, judging by one version of it, or "" if it doesn't.
func (k kept) collected(version *unstructured.Unstructured) string {
	for _, owner := range version.GetOwnerReferences() {
		if owner.UID == k.owner {
			return " by the garbage collector, because of an owner reference to the resource"
		}
	}
	return ""
}

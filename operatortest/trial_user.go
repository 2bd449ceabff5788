package operatortest

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resource is a new one like the sample in the trial's namespace, with another spec unless that is nil.
func (t *trial) resource(spec map[string]any) *unstructured.Unstructured {
	made := t.lab.resource(spec)
	made.SetNamespace(t.namespace)
	return made
}

// create makes an object in the trial's namespace on behalf of a user.
func (t *trial) create(ctx context.Context, object *unstructured.Unstructured) error {
	object.SetNamespace(t.namespace)
	if err := t.cluster.admin.Create(ctx, object, strict); err != nil {
		return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// remove deletes an object on behalf of a user; the garbage collector takes what it owns.
func (t *trial) remove(ctx context.Context, object *unstructured.Unstructured) error {
	if err := t.cluster.admin.Delete(ctx, object); err != nil {
		return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// reread gets an object as it is stored now.
func (t *trial) reread(ctx context.Context, object *unstructured.Unstructured) error {
	if err := t.cluster.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return fmt.Errorf("get %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// respec gives a resource another spec, on behalf of a user.
func (t *trial) respec(ctx context.Context, resource *unstructured.Unstructured, spec map[string]any) error {
	for {
		if err := t.reread(ctx, resource); err != nil {
			return err
		}
		resource.Object["spec"] = runtime.DeepCopyJSON(spec)
		err := t.cluster.admin.Update(ctx, resource, strict)
		if apierrors.IsConflict(err) {
			continue // the operator wrote in between
		}
		if err != nil {
			return fmt.Errorf("change the spec of %s %s: %w", resource.GetKind(), resource.GetName(), err)
		}
		return nil
	}
}

// obstruct gives a resource a spec that can't be met, and waits until its status says so.
func (t *trial) obstruct(ctx context.Context, resource *unstructured.Unstructured, unmeetable Unmeetable) error {
	if err := t.putUp(ctx, unmeetable); err != nil {
		return err
	}
	spec, err := t.unmeetableSpec(unmeetable)
	if err != nil {
		return err
	}
	if err := t.respec(ctx, resource, spec); err != nil {
		return err
	}
	return t.eventually(ctx, "the status to say that it can't be met: a resource whose "+unmeetable.Name, func(ctx context.Context) error {
		return t.unmet(ctx, resource)
	})
}

// putUp makes what stands in the way of a spec, once.
func (t *trial) putUp(ctx context.Context, unmeetable Unmeetable) error {
	if unmeetable.Prepare == nil || t.obstacles[unmeetable.Name] {
		return nil
	}
	if err := unmeetable.Prepare(ctx, t.cluster.admin, t.namespace); err != nil {
		return fmt.Errorf("prepare a resource whose %s: %w", unmeetable.Name, err)
	}
	t.obstacles[unmeetable.Name] = true
	return t.noteTheirs(ctx)
}

// unmet returns an error unless the status says of the present spec that it is not met.
func (t *trial) unmet(ctx context.Context, resource *unstructured.Unstructured) error {
	if err := t.reread(ctx, resource); err != nil {
		return err
	}
	conditions, err := conditionsOf(resource)
	if err != nil {
		return err
	}
	wanted := t.operator.condition()
	condition, found := conditions[wanted]
	if !found {
		return fmt.Errorf("there is no condition %s yet", wanted)
	}
	if condition.ObservedGeneration != resource.GetGeneration() {
		return fmt.Errorf("condition %s has observedGeneration %d, not %d: it is about an older spec", wanted, condition.ObservedGeneration, resource.GetGeneration())
	}
	if condition.Status == metav1.ConditionTrue {
		return fmt.Errorf("condition %s is True", wanted)
	}
	return nil
}

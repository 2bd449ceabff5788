package trial

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/internal/manifest"
)

// Strict makes the API server refuse unknown and duplicate fields.
const Strict = client.FieldValidation(metav1.FieldValidationStrict)

// Resource returns a new resource for the trial. It is like the sample, but has the given spec unless that is nil.
func (t *Trial) Resource(spec map[string]any) *unstructured.Unstructured {
	made := t.Runner.Resource(spec)
	t.place(made)
	return made
}

// Create creates an object in the trial, as a user would.
func (t *Trial) Create(ctx context.Context, object *unstructured.Unstructured) error {
	t.last = nil
	t.place(object)
	if object.GroupVersionKind() != secretKind {
		t.secrets.give(object.Object["spec"])
	}
	if err := t.Cluster.Admin.Create(ctx, object, Strict); err != nil {
		return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), manifest.Explain(err, object))
	}
	t.noteRetained(object)
	return nil
}

// Delete deletes an object, as a user would. The garbage collector then deletes the object's dependents.
func (t *Trial) Delete(ctx context.Context, object *unstructured.Unstructured) error {
	t.last = nil
	if err := t.noteKept(ctx, object); err != nil {
		return err
	}
	if err := t.Cluster.Admin.Delete(ctx, object); err != nil {
		return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// SetSpec gives a resource another spec, as a user would.
func (t *Trial) SetSpec(ctx context.Context, resource *unstructured.Unstructured, spec map[string]any) error {
	t.last = nil
	spec = manifest.FillFields(spec, t.Namespace)
	t.secrets.give(spec)
	for {
		if err := t.Get(ctx, resource); err != nil {
			return err
		}
		resource.Object["spec"] = runtime.DeepCopyJSON(spec)
		err := t.Cluster.Admin.Update(ctx, resource, Strict)
		if apierrors.IsConflict(err) {
			continue // another client, probably the operator, wrote in between
		}
		if err != nil {
			return fmt.Errorf("change the spec of %s %s: %w", resource.GetKind(), resource.GetName(), err)
		}
		t.noteRetained(resource)
		return nil
	}
}

package behaviours

import (
	"context"
	"fmt"
	"maps"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// makeForeign creates someone else's object with the name and the content of a child. The template is the child itself,
// or what [trial.Trial.Template] made of it in another trial. If owned is true, makeForeign also creates a ConfigMap
// that controls the object.
func makeForeign(ctx context.Context, t *trial.Trial, template *unstructured.Unstructured, owned bool) (*unstructured.Unstructured, error) {
	foreign, err := t.FromTemplate(template)
	if err != nil {
		return nil, err
	}
	state.DropGenerated(foreign)
	delete(foreign.Object, "status")
	foreign.Object["metadata"] = map[string]any{
		"name": foreign.GetName(), "annotations": map[string]any{"someone-else.example.com/annotation": "mine"},
	}
	if owned {
		owner := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		owner.SetName("someone-else")
		if err := t.Create(ctx, owner); err != nil {
			return nil, err
		}
		t.Foreign[owner.GetUID()] = true
		foreign.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	}
	if err := t.Create(ctx, foreign); err != nil {
		return nil, err
	}
	t.Foreign[foreign.GetUID()] = true
	return foreign, nil
}

// untouched returns an error if someone else's object was deleted or has changed, or if the operator sent a request to
// change or delete it that the API server didn't refuse. A refused request has done no harm.
func untouched(ctx context.Context, t *trial.Trial, operator *trial.Instance, foreign *unstructured.Unstructured) error {
	if err := unchanged(ctx, t, foreign); err != nil {
		return err
	}
	kind := foreign.GroupVersionKind()
	mapping, err := t.Cluster.Admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("find the resource of kind %s: %w", kind.Kind, err)
	}
	for _, request := range operator.Writes() {
		// A create can't change an existing object.
		isOurs := request.Group == mapping.Resource.Group && request.Resource == mapping.Resource.Resource && request.Namespace == foreign.GetNamespace() && request.Name == foreign.GetName()
		if isOurs && request.Verb != "create" && request.Status < http.StatusBadRequest {
			return fmt.Errorf("expected no write to %s %s, which is not the operator's own\nfound: %s", kind.Kind, foreign.GetName(), request)
		}
	}
	return nil
}

// unchanged returns an error if someone else's object was deleted or replaced, or has changed. Changes to its status,
// and to the annotation in which the Deployment controller counts revisions, are allowed.
func unchanged(ctx context.Context, t *trial.Trial, foreign *unstructured.Unstructured) error {
	now := foreign.DeepCopy()
	if err := t.Get(ctx, now); err != nil {
		return fmt.Errorf("expected the operator to leave %s %s alone\nfound: %w", foreign.GetKind(), foreign.GetName(), err)
	}
	mine := func(object *unstructured.Unstructured) map[string]any {
		annotations := object.GetAnnotations()
		delete(annotations, state.RevisionAnnotation)
		return map[string]any{
			"uid": object.GetUID(), "labels": object.GetLabels(), "annotations": annotations, "ownerReferences": object.GetOwnerReferences(),
			"finalizers": object.GetFinalizers(), "content": content(object),
		}
	}
	if difference := state.Diff(mine(foreign), mine(now)); difference != "" {
		return fmt.Errorf("expected the operator to leave %s %s alone, because it is not the operator's own\nfound changes (- as it was, + as it is):\n%s",
			foreign.GetKind(), foreign.GetName(), difference)
	}
	return nil
}

// content returns everything in an object except the metadata and the status.
func content(object *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(object.Object)
	delete(fields, "metadata")
	delete(fields, "status")
	return fields
}

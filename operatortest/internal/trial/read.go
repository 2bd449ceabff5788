package trial

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/internal/state"
)

// clusterCertificate is the name of a ConfigMap that the controller manager creates in every namespace.
const clusterCertificate = "kube-root-ca.crt"

// State reads the resources, the objects of the children's kinds, and what exists outside Kubernetes. It leaves out
// objects that are known to be someone else's, objects that a controller other than the operator has made, and retained
// children that no resource should have any more. It returns an error if something that others applied to a child is
// gone or has changed.
func (t *Trial) State(ctx context.Context) (state.Snapshot, error) {
	resources, err := t.List(ctx, t.Sample.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	objects := slices.Clone(resources)
	placeholders := []string{t.Namespace, "<namespace>"}
	for _, resource := range resources {
		placeholders = append(placeholders, string(resource.GetUID()), "<UID of "+strings.ReplaceAll(resource.GetName(), t.Namespace, "<namespace>")+">")
	}
	for _, kind := range t.ChildKinds() {
		made, err := t.List(ctx, kind)
		if err != nil {
			return nil, err
		}
		objects = append(objects, made...)
		for _, child := range made {
			if name, generated := t.generatedName(child); generated {
				placeholders = append(placeholders, child.GetName(), "<"+name+">")
			}
		}
	}
	normalize := t.normalizer()
	found, names := state.Snapshot{}, strings.NewReplacer(placeholders...)
	for _, object := range objects {
		if !t.isChild(object) || t.isOthersChild(object, resources) || t.isLeft(object, resources) {
			continue
		}
		object, err := t.withoutApplied(object)
		if err != nil {
			return nil, err
		}
		key, content, err := normalize.Normalize(object, names)
		if err != nil {
			return nil, err
		}
		if _, generated := t.generatedName(object); generated {
			key = t.Key(object)
		}
		found.Add(key, content)
	}
	if t.Operator.External != nil {
		external, err := t.Operator.External.Snapshot(ctx, t.Namespace)
		if err != nil {
			return nil, fmt.Errorf("read what exists outside Kubernetes: %w", err)
		}
		found[state.External] = external
	}
	return found, nil
}

func (t *Trial) normalizer() state.Normalizer {
	return state.Normalizer{Resource: t.Sample.GroupVersionKind(), Further: t.Operator.Normalize}
}

// cachedKey marks a context in which a trial reads from the Runner's store.
type cachedKey struct{}

func isCached(ctx context.Context) bool { return ctx.Value(cachedKey{}) != nil }

// List returns all objects of a kind in the trial.
func (t *Trial) List(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	if isCached(ctx) {
		if objects, watched := t.store.list(kind, t.namespaceOf(kind)); watched {
			return slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return !t.isOurs(object) }), nil
		}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	if err := t.Cluster.Admin.List(ctx, list, client.InNamespace(t.Namespace)); err != nil {
		return nil, fmt.Errorf("list every %s in %s: %w", kind.Kind, t.Namespace, err)
	}
	var objects []*unstructured.Unstructured
	for i := range list.Items {
		if t.isOurs(&list.Items[i]) {
			objects = append(objects, &list.Items[i])
		}
	}
	return objects, nil
}

// Get gets an object from the API server or, while [Trial.Await] checks its condition against the Runner's store, from
// the store.
func (t *Trial) Get(ctx context.Context, object *unstructured.Unstructured) error {
	if err := t.get(ctx, object); err != nil {
		return fmt.Errorf("get %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// get is like Get, but returns the error unchanged. The object must have a kind and a name and, unless it is
// cluster-scoped, a namespace.
func (t *Trial) get(ctx context.Context, object *unstructured.Unstructured) error {
	key, kind := client.ObjectKeyFromObject(object), object.GroupVersionKind()
	if !isCached(ctx) {
		return t.Cluster.Admin.Get(ctx, key, object)
	}
	found, watched := t.store.get(kind, key.Namespace, key.Name)
	if !watched {
		return t.Cluster.Admin.Get(ctx, key, object)
	}
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
	}
	object.Object = found.Object
	return nil
}

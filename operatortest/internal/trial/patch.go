package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/specgen"
)

// ForeignPatch is a patch that anyone may apply to a child. For a resource, see [Trial.Touch].
const ForeignPatch = `{"metadata":{"labels":{"someone-else.example.com/label":"kept"},"annotations":{"someone-else.example.com/annotation":"kept"}}}`

// Patch changes an object with a JSON merge patch, as a user would. A patch that changes nothing is an error: any
// operator would pass a trial with it.
func (t *Trial) Patch(ctx context.Context, object *unstructured.Unstructured, patch string) error {
	t.last, patch = nil, t.Fill(patch)
	t.secrets.give(json.RawMessage(patch))
	before := object.DeepCopy()
	if err := t.Cluster.Admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)), Strict); err != nil {
		return fmt.Errorf("patch %s %s with %s: %w", object.GetKind(), object.GetName(), patch, err)
	}
	if err := t.forgetApplied(before, patch); err != nil {
		return err
	}
	if len(ChangedFields(patch, before, object)) == 0 {
		return fmt.Errorf("expected the patch %s to change %s %s\nfound that it has not changed, so this patch tests nothing: "+
			"correct the fields or values in it", patch, object.GetKind(), object.GetName())
	}
	return nil
}

// Touch makes the API server store a new version of a resource that differs from the last one only in
// metadata.managedFields: someone else applies the spec that the resource already has. That gives the operator nothing
// to do. A new label or annotation might give it work: many operators rightly copy those to their children.
func (t *Trial) Touch(ctx context.Context, resource *unstructured.Unstructured) error {
	t.last = nil
	if err := t.Get(ctx, resource); err != nil {
		return err
	}
	part := &unstructured.Unstructured{Object: map[string]any{"spec": resource.Object["spec"]}}
	part.SetGroupVersionKind(resource.GroupVersionKind())
	part.SetNamespace(resource.GetNamespace())
	part.SetName(resource.GetName())
	content, err := part.MarshalJSON()
	if err != nil {
		return err
	}
	before := resource.GetResourceVersion()
	if err := t.Cluster.Admin.Patch(ctx, resource, client.RawPatch(types.ApplyPatchType, content), client.FieldOwner(applier), Strict); err != nil {
		return fmt.Errorf("apply to %s %s the spec that it has already: %w", resource.GetKind(), resource.GetName(), err)
	}
	if resource.GetResourceVersion() == before {
		return fmt.Errorf("expected a new version of %s %s after someone else applied its spec\nfound the same version, so this tests nothing", resource.GetKind(), resource.GetName())
	}
	return nil
}

// PatchForeign patches a child's fields that don't belong to the operator, and returns the patches with the namespace's
// name replaced as in a snapshot. It fails if comparisons leave out everything that a patch changes, because none of
// them would then notice if the operator removed it. PatchForeign also adds others' parts with server-side apply;
// [Trial.State] checks that they stay.
func (t *Trial) PatchForeign(ctx context.Context, declared operatortest.Child, child *unstructured.Unstructured) ([]string, error) {
	patches := []string{ForeignPatch}
	for _, what := range slices.Sorted(maps.Keys(declared.Foreign)) {
		patches = append(patches, declared.Foreign[what])
	}
	for _, patch := range patches {
		before := child.DeepCopy()
		if err := t.Patch(ctx, child, patch); err != nil {
			return nil, err
		}
		differs, err := t.differ(before, child)
		if err != nil {
			return nil, err
		}
		if !differs {
			return nil, fmt.Errorf("expected the patch %s to change a compared field of %s %s\n"+
				"found none: Operator.Normalize or the kit itself leaves the field out of comparisons", patch, child.GetKind(), child.GetName())
		}
	}
	for i, patch := range patches {
		patches[i] = t.plain(t.Fill(patch))
	}
	return patches, t.applyForeign(ctx, declared, child)
}

// differ reports whether two versions of an object still differ after normalization.
func (t *Trial) differ(before, after *unstructured.Unstructured) (bool, error) {
	normalize := t.normalizer()
	_, former, err := normalize.Normalize(before, strings.NewReplacer())
	if err != nil {
		return false, err
	}
	_, present, err := normalize.Normalize(after, strings.NewReplacer())
	return !equality.Semantic.DeepEqual(former, present), err
}

// field is a field that a patch changed, and the value that the patch gave it, or nil if the patch removed it.
type field struct {
	path  []string
	value any
}

// ChangedFields returns the fields that a merge patch changed, with their new values.
func ChangedFields(patch string, before, after *unstructured.Unstructured) []field {
	content := map[string]any{}
	if json.Unmarshal([]byte(patch), &content) != nil {
		return nil // the API server has refused the patch
	}
	var changed []field
	for _, path := range Leaves(content, nil) {
		if value := valueAt(after, path); !equality.Semantic.DeepEqual(value, valueAt(before, path)) {
			changed = append(changed, field{path: path, value: value})
		}
	}
	return changed
}

// Leaves returns the paths of the fields without inner fields. In a merge patch, these are the fields that it sets or
// removes. A list counts as one field.
func Leaves(fields map[string]any, outer []string) [][]string {
	var paths [][]string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		path := append(slices.Clone(outer), name)
		inner, ok := fields[name].(map[string]any)
		if !ok || len(inner) == 0 {
			paths = append(paths, path)
			continue
		}
		paths = append(paths, Leaves(inner, path)...)
	}
	return paths
}

func valueAt(object *unstructured.Unstructured, path []string) any {
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil {
		return nil // a field on the path is no longer an object
	}
	return value
}

// WaitRepaired waits until no disturbed field of an object has the value that the disturbance gave it. It compares
// the values without normalizing them, so that even a field with random content can be disturbed.
func (t *Trial) WaitRepaired(ctx context.Context, object *unstructured.Unstructured, disturbed []field, what string) error {
	return t.Await(ctx, what, func(ctx context.Context) error {
		now := object.DeepCopy()
		if err := t.Get(ctx, now); err != nil {
			return err
		}
		for _, field := range disturbed {
			if value := valueAt(now, field.path); equality.Semantic.DeepEqual(value, field.value) {
				return fmt.Errorf("%s of %s %s still has the value that it was changed to: %s",
					strings.Join(field.path, "."), now.GetKind(), now.GetName(), specgen.OneLine(value))
			}
		}
		return nil
	})
}

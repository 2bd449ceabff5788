package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/specgen"
)

// applier is the field manager of someone who shares a resource with the operator. For a child, a slash and a
// description of the applied part follow.
const applier = "someone-else"

// Kstatus is a part of the behaviour "converges". Name it in Operator.LeftOut if another controller sets any of the
// resource's conditions that kstatus interprets.
const Kstatus = "converges/kstatus"

// Resync is a part of the behaviour "silent". Name it in Operator.LeftOut if the operator has no setting for resyncs.
const Resync = "silent/resync"

// Some operators may rightly remove these parts of what others apply. For such an operator, name the part in
// Operator.LeftOut.
const (
	AppliedEnv         = "drift/env"
	AppliedAnnotations = "drift/template-annotations"
	AppliedSecrets     = "drift/secrets"
)

// appliedParts contains what others add to an object that they share with the operator. Comparisons of states leave
// these parts out, so it makes no difference where in a list an added entry is, or whether the list existed before.
type appliedParts struct {
	name   string
	leaves []appliedLeaf
	// isPartial means that one of the kit's own patches has removed some of them.
	isPartial bool
}

// appliedLeaf is a field, or an entry in a list of plain values, that the API server recorded for a field manager whose
// name begins with applier.
type appliedLeaf struct {
	path  fieldpath.Path
	value any
	// added is the part that can be removed: the outermost list entry that didn't exist before, or else the field.
	added fieldpath.Path
}

// applyForeign adds to a child, with server-side apply, what others add to lists and maps that they share with the
// operator. The API server merges a list by the keys that its schema declares, if any.
func (t *Trial) applyForeign(ctx context.Context, declared operatortest.Child, child *unstructured.Unstructured) error {
	configurations := map[string]map[string]any{}
	if usual := t.usuallyApplied(child); usual != nil {
		configurations["what the kit always tries"] = usual
	}
	for what, content := range declared.Applied {
		configuration := map[string]any{}
		if err := json.Unmarshal([]byte(t.Fill(content)), &configuration); err != nil {
			return fmt.Errorf("read Child.Applied %q as a JSON object: %w", what, err)
		}
		configurations[what] = configuration
	}
	for _, what := range slices.Sorted(maps.Keys(configurations)) {
		if err := t.apply(ctx, child, applier+"/"+what, configurations[what]); err != nil {
			return fmt.Errorf("apply to %s %s, as others do, %s: %w", child.GetKind(), child.GetName(), what, err)
		}
	}
	return nil
}

// usuallyApplied returns what others add to an object of this kind in many clusters, or nil if there is nothing to add.
func (t *Trial) usuallyApplied(child *unstructured.Unstructured) map[string]any {
	switch kind := child.GroupVersionKind().GroupKind(); kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		return nested(t.appliedToPods(child, "spec", "template"), "spec", "template")
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return nested(t.appliedToPods(child, "spec", "jobTemplate", "spec", "template"), "spec", "jobTemplate", "spec", "template")
	case schema.GroupKind{Kind: "ServiceAccount"}: // OpenShift adds such a reference to each
		if !t.LeftOut(AppliedSecrets) {
			return map[string]any{"secrets": []any{map[string]any{"name": "someone-else"}}}
		}
	}
	return nil
}

// appliedToPods returns a part that adds an annotation to a pod template, as "kubectl rollout restart" does, and an
// environment variable to its first container, as "kubectl set env" does. It omits what Operator.LeftOut names.
func (t *Trial) appliedToPods(child *unstructured.Unstructured, path ...string) map[string]any {
	template := map[string]any{}
	if !t.LeftOut(AppliedAnnotations) {
		template["metadata"] = map[string]any{"annotations": map[string]any{"someone-else.example.com/annotation": "kept"}}
	}
	containers, _, _ := unstructured.NestedSlice(child.Object, append(path, "spec", "containers")...)
	if len(containers) > 0 && !t.LeftOut(AppliedEnv) {
		first, _ := containers[0].(map[string]any)
		template["spec"] = map[string]any{"containers": []any{
			map[string]any{"name": first["name"], "env": []any{map[string]any{"name": "SOMEONE_ELSE", "value": "kept"}}},
		}}
	}
	return template
}

// nested puts content at the end of a path. For empty content, it returns nil.
func nested(content map[string]any, path ...string) map[string]any {
	if len(content) == 0 {
		return nil
	}
	for _, name := range slices.Backward(path) {
		content = map[string]any{name: content}
	}
	return content
}

// apply applies part of an object as a field manager, and remembers the fields that it added or changed by doing so. If
// there are none, that is an error, unless one of the kit's own patches has removed from the object something that
// others had applied.
func (t *Trial) apply(ctx context.Context, object *unstructured.Unstructured, manager string, configuration map[string]any) error {
	t.last = nil
	before := object.DeepCopy()
	part := &unstructured.Unstructured{Object: configuration}
	part.SetGroupVersionKind(object.GroupVersionKind())
	part.SetNamespace(object.GetNamespace())
	part.SetName(object.GetName())
	part.SetUID(object.GetUID()) // so that no other object is changed if this one is gone
	content, err := part.MarshalJSON()
	if err != nil {
		return err
	}
	if err := t.Cluster.Admin.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, content), client.FieldOwner(manager), Strict); err != nil {
		return err
	}
	owned, err := ownedBy(object, manager)
	if err != nil {
		return err
	}
	var leaves []appliedLeaf
	owned.Leaves().Iterate(func(path fieldpath.Path) {
		path = path.Copy()
		value, _ := at(object.Object, path)
		if former, found := at(before.Object, path); !found || !equality.Semantic.DeepEqual(former, value) {
			leaves = append(leaves, appliedLeaf{path: path, value: value, added: outermost(before.Object, path)})
		}
	})
	known := t.applied[object.GetUID()]
	if len(leaves) == 0 && !known.isPartial {
		return fmt.Errorf("expected it to add something to the object\nfound that the object has not changed, so this tests nothing: %s", specgen.OneLine(configuration))
	}
	known.name, known.leaves = object.GetKind()+" "+object.GetName(), append(known.leaves, leaves...)
	t.applied[object.GetUID()] = known
	return nil
}

// ownedBy returns the fields that a manager applied, as the API server has recorded them.
func ownedBy(object *unstructured.Unstructured, manager string) (*fieldpath.Set, error) {
	owned := &fieldpath.Set{}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.FieldsV1 != nil {
			if err := owned.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
				return nil, fmt.Errorf("read the fields of %s in metadata.managedFields: %w", manager, err)
			}
		}
	}
	return owned, nil
}

// forgetApplied forgets the applied parts that a merge patch removes, for example because it replaces a list. It computes
// the patch's result itself, because the operator may have removed more from the stored object.
func (t *Trial) forgetApplied(before *unstructured.Unstructured, patch string) error {
	known, found := t.applied[before.GetUID()]
	if !found {
		return nil
	}
	content, err := before.MarshalJSON()
	if err != nil {
		return err
	}
	if content, err = jsonpatch.MergePatch(content, []byte(patch)); err != nil {
		return fmt.Errorf("apply %s to %s: %w", patch, known.name, err)
	}
	after := &unstructured.Unstructured{}
	if err := after.UnmarshalJSON(content); err != nil {
		return err
	}
	all := len(known.leaves)
	known.leaves = slices.DeleteFunc(known.leaves, func(leaf appliedLeaf) bool { return leaf.missingIn(after) })
	known.isPartial = known.isPartial || len(known.leaves) < all
	t.applied[before.GetUID()] = known
	return nil
}

// Reapply applies again what others applied to a child, if one of the kit's own patches has removed part of it.
func (t *Trial) Reapply(ctx context.Context, declared operatortest.Child, child *unstructured.Unstructured) error {
	if !t.applied[child.GetUID()].isPartial {
		return nil
	}
	if err := t.Get(ctx, child); err != nil {
		return err
	}
	if _, err := t.withoutApplied(child); err != nil { // checks what the patch has left
		return fmt.Errorf("expected %s %s to keep what others have added\nfound: %w", child.GetKind(), child.GetName(), err)
	}
	return t.applyForeign(ctx, declared, child)
}

// withoutApplied returns an object without what others applied to it, or an error if any of those fields is gone or has
// another value.
func (t *Trial) withoutApplied(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	known := t.applied[object.GetUID()]
	if len(known.leaves) == 0 {
		return object, nil
	}
	rest := object.DeepCopy()
	for _, leaf := range known.leaves {
		if leaf.missingIn(object) {
			return nil, fmt.Errorf("%s of %s, which someone else applied with the value %s, is gone or has another value", strings.TrimPrefix(leaf.path.String(), "."), known.name, specgen.OneLine(leaf.value))
		}
		remove(rest.Object, leaf.added)
	}
	return rest, nil
}

func (l appliedLeaf) missingIn(object *unstructured.Unstructured) bool {
	value, found := at(object.Object, l.path)
	return !found || !equality.Semantic.DeepEqual(value, l.value)
}

package learn

import (
	"cmp"
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

	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
)

const (
	// maxProposals is the largest number of drift patches that are proposed for a child.
	maxProposals = 2
	// maxText is the length of the longest string that a patch may repeat.
	maxText = 40
)

// proposal is a merge patch that changes a child and that the operator should undo.
type proposal struct {
	// What says what the patch does.
	What  string
	Patch map[string]any
	// Default means that the field's current value is also the API server's default.
	Default bool
}

// components lists the field managers of the cluster's own components. All other managers count as the operator.
var components = []string{"kube-controller-manager", "kube-scheduler", "kube-apiserver", "kubelet", "kwok"}

// owned returns the paths of the fields that the operator has written, according to the object's managed fields. A
// list counts as one path. Writes to subresources, such as the status, are left out.
func owned(object *unstructured.Unstructured) [][]string {
	var paths [][]string
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil || slices.Contains(components, entry.Manager) {
			continue
		}
		fields := map[string]any{}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil {
			paths = append(paths, managed(fields, nil)...)
		}
	}
	return paths
}

// managed returns the paths in a set of managed fields. Keys that begin with "f:" name fields; the others are items of
// a list, or ".", which means the outer field itself.
func managed(fields map[string]any, outer []string) [][]string {
	var paths [][]string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		inner, _ := fields[key].(map[string]any)
		if name, isField := strings.CutPrefix(key, "f:"); isField {
			paths = append(paths, managed(inner, append(slices.Clone(outer), name))...)
		}
	}
	if len(paths) == 0 && len(outer) > 0 {
		return [][]string{outer}
	}
	return paths
}

// split returns the paths of a child's fields: those that the operator owns, and the others. It leaves out the status,
// most of the metadata, what the API server generates for a Service or a Job, and the Deployment controller's
// annotation.
func split(object *unstructured.Unstructured) (own, others [][]string) {
	known, content := owned(object), object.DeepCopy()
	state.DropGenerated(content)
	for _, path := range trial.Leaves(content.Object, nil) {
		isMeta := path[0] == "metadata" && (len(path) < 3 || path[1] != "labels" && path[1] != "annotations")
		if isMeta || slices.Contains([]string{"apiVersion", "kind", "status"}, path[0]) || path[len(path)-1] == state.RevisionAnnotation {
			continue
		}
		isOwn := slices.ContainsFunc(known, func(other []string) bool {
			return len(other) <= len(path) && slices.Equal(other, path[:len(other)])
		})
		if isOwn {
			own = append(own, path)
		} else {
			others = append(others, path)
		}
	}
	// The field that operators set most often goes first.
	slices.SortStableFunc(own, func(a, b []string) int { return cmp.Compare(rank(a), rank(b)) })
	return own, others
}

func rank(path []string) int {
	if path[len(path)-1] == "replicas" {
		return 0
	}
	return 1
}

// proposals returns patches for one field, the simplest first. A patch removes a label, or gives another value to a
// number or a string. For anything else, such as a list, a boolean or an annotation, proposals returns none.
func proposals(object *unstructured.Unstructured, path []string) []proposal {
	name := strings.Join(path, ".")
	made := func(what string, value any) proposal {
		return proposal{What: name + " " + what, Patch: nested(path, value)}
	}
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	if path[0] == "metadata" {
		if path[1] != "labels" {
			return nil
		}
		return []proposal{made("removed", nil)}
	}
	switch value := value.(type) {
	case int64:
		return []proposal{made("raised", value+1)}
	case float64:
		return []proposal{made("raised", value+1)}
	case string:
		texts := []string{"changed"}
		if len(value) <= maxText && !strings.Contains(value, "\n") && object.GetKind() != "Secret" {
			texts = append(texts, value+"-changed")
		}
		var all []proposal
		for _, text := range append(texts, "Y2hhbmdlZA==", "7") { // like a value of a Secret, and like a quantity
			if text != value {
				all = append(all, made("changed", text))
			}
		}
		return all
	}
	return nil
}

// nested returns a merge patch that sets one field or, if the value is nil, removes it.
func nested(path []string, value any) map[string]any {
	for i := len(path) - 1; i > 0; i-- {
		value = map[string]any{path[i]: value}
	}
	return map[string]any{path[0]: value}
}

// accepted returns at most maxProposals proposals that the API server accepts: first one for a field that doesn't have
// its default value, then one for a label, then more for fields that don't have their default values. If there is none
// for such a field, accepted proposes to change one that has its default value, although the operator may not have set
// that field.
func accepted(ctx context.Context, t *trial.Trial, object *unstructured.Unstructured) ([]proposal, error) {
	own, _ := split(object)
	var set, defaulted, labels []proposal
	for _, path := range own {
		made, err := firstAccepted(ctx, t, object, proposals(object, path))
		switch {
		case err != nil:
			return nil, err
		case made == nil:
		case path[0] == "metadata":
			labels = append(labels, *made)
		case isDefault(ctx, t, object, path):
			made.Default = true
			defaulted = append(defaulted, *made)
		default:
			set = append(set, *made)
		}
	}
	if len(set) == 0 {
		set = defaulted[:min(1, len(defaulted))]
	}
	return choose(set, labels), nil
}

// choose takes one proposal from set and one from labels, then more from set, up to maxProposals.
func choose(set, labels []proposal) []proposal {
	one := min(1, len(set))
	all := slices.Concat(set[:one], labels[:min(1, len(labels))], set[one:])
	return all[:min(maxProposals, len(all))]
}

// firstAccepted returns the first proposal that the API server accepts, or nil if it refuses all.
func firstAccepted(ctx context.Context, t *trial.Trial, object *unstructured.Unstructured, tried []proposal) (*proposal, error) {
	for _, made := range tried {
		patch, err := json.Marshal(made.Patch)
		if err != nil {
			return nil, fmt.Errorf("write a patch: %w", err)
		}
		err = t.Cluster.Admin.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, patch), trial.Strict, client.DryRunAll)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			return &made, nil
		}
	}
	return nil, nil
}

// isDefault reports whether a field's value is the API server's default.
func isDefault(ctx context.Context, t *trial.Trial, object *unstructured.Unstructured, path []string) bool {
	bare := object.DeepCopy()
	state.DropGenerated(bare)
	bare.Object["metadata"] = map[string]any{"generateName": "default-", "namespace": object.GetNamespace()}
	delete(bare.Object, "status")
	unstructured.RemoveNestedField(bare.Object, path...)
	if t.Cluster.Admin.Create(ctx, bare, client.DryRunAll) != nil {
		return false
	}
	given, _, _ := unstructured.NestedFieldNoCopy(bare.Object, path...)
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	return equality.Semantic.DeepEqual(given, value)
}

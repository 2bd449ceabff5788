package operatortest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var drift = behaviour{
	name:    "drift",
	promise: "brings back what others delete or change of its children, and leaves alone what is theirs",
	advice: "the watch on the children, and how they are compared: every field the operator sets must be compared, and only those written; " +
		"an update that sends a new object instead of the changed old one wipes out others' fields",
	needsChild: true,
	check: func(ctx context.Context, lab *lab) error {
		var cases []driftCase
		for i, child := range lab.operator.Children {
			cases = append(cases, driftCase{child: i, what: "deleted"})
			for _, what := range slices.Sorted(maps.Keys(child.Drift)) {
				cases = append(cases, driftCase{child: i, what: what, patch: child.Drift[what]})
			}
		}
		wanted, err := lab.fresh(ctx, nil)
		if err != nil {
			return err
		}
		return each(ctx, len(cases), func(ctx context.Context, i int) error {
			return lab.try(ctx, func(ctx context.Context, trial *trial) error { return trial.drift(ctx, cases[i], wanted) })
		})
	},
}

// driftCase is one disturbance of one declared child: a patch, or its deletion.
type driftCase struct {
	child       int
	what, patch string
}

func (t *trial) drift(ctx context.Context, disturbance driftCase, wanted state) error {
	resource := t.resource(nil)
	if _, err := t.settle(ctx, t.start(RunOptions{}), resource); err != nil {
		return err
	}
	declared := t.operator.Children[disturbance.child]
	child, err := t.child(ctx, declared, resource)
	if err != nil {
		return err
	}
	if child == nil {
		return fmt.Errorf("expected the sample to have each child of Operator.Children\nfound no name for its %s: "+
			"take a sample with this child, or nothing tests whether it comes back", declared.Kind.Kind)
	}
	what := fmt.Sprintf("%s %s to come back after it was changed: %s", child.GetKind(), child.GetName(), disturbance.what)
	if disturbance.patch == "" {
		if err := t.remove(ctx, child); err != nil {
			return err
		}
		return t.convergeTo(ctx, resource, wanted, what)
	}
	foreign, err := t.patchForeign(ctx, declared, child)
	if err != nil {
		return err
	}
	before := child.DeepCopy()
	if err := t.patch(ctx, child, disturbance.patch); err != nil {
		return err
	}
	if err := t.repaired(ctx, child, changedFields(disturbance.patch, before, child), what); err != nil {
		return err
	}
	wanted, err = wanted.with(child, foreign)
	if err != nil {
		return err
	}
	return t.convergeTo(ctx, resource, wanted, what+"; and what others wrote to it to stay")
}

// with returns the state with patches applied to one of its objects.
func (s state) with(object *unstructured.Unstructured, patches []string) (state, error) {
	key := object.GetKind() + "/" + object.GetName()
	content, err := json.Marshal(s[key])
	if err != nil {
		return nil, fmt.Errorf("write %s as JSON: %w", key, err)
	}
	for _, patch := range patches {
		if content, err = jsonpatch.MergePatch(content, []byte(patch)); err != nil {
			return nil, fmt.Errorf("apply %s to %s: %w", patch, key, err)
		}
	}
	var changed any
	if err := json.Unmarshal(content, &changed); err != nil {
		return nil, fmt.Errorf("read %s from JSON: %w", key, err)
	}
	result := maps.Clone(s)
	result[key] = changed
	return result, nil
}

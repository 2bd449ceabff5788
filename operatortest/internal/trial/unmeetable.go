package trial

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/specgen"
)

// UnmeetableSpec returns the sample's spec with an Unmeetable's patch applied. A patch that changes nothing is an
// error.
func (runner *Runner) UnmeetableSpec(unmeetable operatortest.Unmeetable) (map[string]any, error) {
	content, err := json.Marshal(map[string]any{"spec": runner.SampleSpec()})
	if err != nil {
		return nil, fmt.Errorf("write the sample's spec as JSON: %w", err)
	}
	if content, err = jsonpatch.MergePatch(content, []byte(unmeetable.Patch)); err != nil {
		return nil, fmt.Errorf("apply the patch of Operator.Unmeetable %q: %w", unmeetable.Name, err)
	}
	patched := map[string]any{}
	if err := utiljson.Unmarshal(content, &patched); err != nil {
		return nil, fmt.Errorf("read the spec of Operator.Unmeetable %q: %w", unmeetable.Name, err)
	}
	spec, _, err := unstructured.NestedMap(patched, "spec")
	if err == nil && specgen.OneLine(spec) == specgen.OneLine(runner.SampleSpec()) {
		err = fmt.Errorf("expected the patch of Operator.Unmeetable %q to change the sample's spec\nfound that it changes nothing: %s",
			unmeetable.Name, unmeetable.Patch)
	}
	return spec, err
}

// MakeUnmeetable gives a resource a spec that can't be met, and waits until its status reports that the spec isn't met.
func (t *Trial) MakeUnmeetable(ctx context.Context, resource *unstructured.Unstructured, unmeetable operatortest.Unmeetable) error {
	if err := t.PrepareUnmeetable(ctx, unmeetable); err != nil {
		return err
	}
	spec, err := t.UnmeetableSpec(unmeetable)
	if err != nil {
		return err
	}
	if err := t.SetSpec(ctx, resource, spec); err != nil {
		return err
	}
	return t.Await(ctx, "the status to say that the spec is not met: the "+t.Sample.GetKind()+"'s "+unmeetable.Name, func(ctx context.Context) error {
		return t.Unmet(ctx, resource)
	})
}

// PrepareUnmeetable creates what keeps the operator from meeting a spec, unless the trial has done so before.
func (t *Trial) PrepareUnmeetable(ctx context.Context, unmeetable operatortest.Unmeetable) error {
	if unmeetable.Prepare == nil || t.prepared[unmeetable.Name] {
		return nil
	}
	if err := unmeetable.Prepare(ctx, t.preparer(), t.Namespace); err != nil {
		return fmt.Errorf("prepare a resource whose %s: %w", unmeetable.Name, err)
	}
	t.prepared[unmeetable.Name] = true
	return t.markForeign(ctx)
}

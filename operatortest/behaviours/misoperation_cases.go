package behaviours

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// missing is the suffix of a nonexistent object's name.
const missing = "-is-missing"

// danglingReferences returns trials in which the spec names an object that does not exist. The sample shows which
// fields name an object: those whose value is the name of an object that Operator.Prepare creates. Immutable fields
// don't count, because the spec is corrected later; nor do those in Operator.Fixed, which keep the sample's value.
func danglingReferences(ctx context.Context, runner *trial.Runner) ([]trial.Case, error) {
	kept := below(slices.AppendSeq(slices.Clone(runner.Operator.Immutable), maps.Keys(runner.Operator.Fixed)), "spec")
	var cases []trial.Case
	for _, prepared := range runner.Prepared() {
		spec, found := renameIn(runner.SampleSpec(), kept, prepared, prepared+missing)
		if !found {
			continue
		}
		if _, err := runner.Admits(ctx, spec.(map[string]any)); err != nil {
			if trial.Refused(err) {
				continue // the definition or a webhook doesn't allow it
			}
			return nil, err
		}
		what := fmt.Sprintf("the spec names %s, which does not exist", prepared+missing)
		cases = append(cases, trial.Case{Name: what, Try: corrected(what, spec.(map[string]any))})
	}
	return cases, nil
}

// impossibleSpecs returns trials in which the spec itself asks for pods that can't run. The cluster can't solve this
// problem: the spec must be changed, and the operator must apply the change although these pods don't run.
func impossibleSpecs(ctx context.Context, runner *trial.Runner) ([]trial.Case, error) {
	known, err := runner.Specs(ctx)
	if err != nil {
		return nil, err
	}
	var cases []trial.Case
	for _, candidate := range known.Impossible() {
		if _, err := runner.Admits(ctx, candidate.To); err != nil {
			if trial.Refused(err) {
				continue // another rule of the definition, or a webhook, forbids it
			}
			return nil, err
		}
		cases = append(cases, trial.Case{Name: candidate.What, Try: corrected(candidate.What, candidate.To)})
	}
	return cases, nil
}

// renameIn returns a copy of a spec, or of a part of one, in which each string that equals name is replaced with other.
// It reports whether it found such a string. It leaves alone the fields at the paths in kept, which are relative to the
// given value.
func renameIn(value any, kept []string, name, other string) (renamed any, found bool) {
	if slices.Contains(kept, "") {
		return runtime.DeepCopyJSONValue(value), false
	}
	switch value := value.(type) {
	case string:
		if value == name {
			return other, true
		}
	case map[string]any:
		copied := maps.Clone(value)
		for field, inner := range value {
			changed, here := renameIn(inner, below(kept, "."+field, ".*"), name, other)
			copied[field], found = changed, found || here
		}
		return copied, found
	case []any:
		copied := make([]any, len(value))
		for i, inner := range value {
			changed, here := renameIn(inner, below(kept, "[]"), name, other)
			copied[i], found = changed, found || here
		}
		return copied, found
	}
	return runtime.DeepCopyJSONValue(value), false
}

// below returns, for each path that begins with one of the steps, the rest of the path.
func below(paths []string, steps ...string) (rest []string) {
	for _, path := range paths {
		for _, step := range steps {
			after, found := strings.CutPrefix(path, step)
			if found && (after == "" || after[0] == '.' || after[0] == '[') {
				rest = append(rest, after)
			}
		}
	}
	return rest
}

// corrected returns an experiment that creates a resource with a spec that can't be met, and then replaces that with
// the sample's spec.
func corrected(what string, spec map[string]any) func(context.Context, *trial.Trial) error {
	return func(ctx context.Context, t *trial.Trial) error {
		wanted, err := t.Fresh(ctx, nil)
		if err != nil {
			return err
		}
		operator, resource := t.Start(operatortest.RunOptions{}), t.Resource(spec)
		if err := t.Create(ctx, resource); err != nil {
			return err
		}
		met, err := unmet(ctx, t, operator, resource)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if met {
			t.NotTried = "not affected: the spec is met nevertheless"
		}
		if err := t.SetSpec(ctx, resource, t.SampleSpec()); err != nil {
			return err
		}
		return t.ConvergeTo(ctx, resource, wanted, "the corrected resource to reach the same final state as a new one")
	}
}

package behaviours

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/specgen"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// tries bounds how many values of a field, not counting those that the API server refuses, are tried to find one that
// makes a difference.
const tries = 3

var update = behaviour{
	name:    "update",
	promise: "carries out every change of the spec, and leaves nothing of the old one behind",
	advice: "what the children are compared with: every field of the spec must take effect, even on children that already exist; " +
		"a child with a former name must be found (by its controller reference) and deleted; what came from a field that is gone from the spec must be removed; " +
		"if only a condition about the change itself differs, remove it in Operator.Normalize",
	check: func(ctx context.Context, runner *trial.Runner) error {
		known, err := runner.Specs(ctx)
		if err != nil {
			return err
		}
		changes, unknown := known.Changes()
		immutable := known.Immutable
		if len(changes)+len(immutable)+len(unknown) == 0 {
			return errors.New("expected a spec with fields to change\nfound none in the schema")
		}
		err = trial.Each(ctx, len(changes)+len(immutable), func(ctx context.Context, i int) error {
			if i < len(changes) {
				return tryUpdate(ctx, runner, known, changes[i])
			}
			return tryImmutable(ctx, runner, known, immutable[i-len(changes)])
		})
		if runner.OnlyTrial != "" {
			return err
		}
		return errors.Join(err, allKnown(unknown))
	},
}

// allKnown returns an error if there are fields for which no second value is known.
func allKnown(unknown []string) error {
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("expected a second valid value for each field of the spec, to change it to\n"+
		"found none for %s, whose schema doesn't say enough: declare Operator.Values for each, or for an object around it; "+
		"if a field or an object can't be changed in a trial, name it in Operator.Fixed, with the reason", strings.Join(unknown, ", "))
}

// tryUpdate makes one change to a converged resource, with the first candidate that the API server accepts and that
// makes the required difference.
func tryUpdate(ctx context.Context, runner *trial.Runner, known *specgen.Specs, change specgen.Change) error {
	before, err := runner.FreshOf(ctx, known, change.From)
	if err != nil {
		return err
	}
	var useless, refusals []string
	for _, candidate := range change.Candidates {
		if len(useless) == tries {
			break
		}
		if _, err := runner.Admits(ctx, candidate.To); err != nil {
			if !trial.Refused(err) {
				return err
			}
			refusals = append(refusals, err.Error())
			continue
		}
		after, err := runner.FreshOf(ctx, known, candidate.To)
		if err != nil {
			return fmt.Errorf("%s: %w", candidate.What, err)
		}
		if change.Effective && !runner.LeftOut("update/"+change.Path) && withoutSpecs(runner, after).Difference(withoutSpecs(runner, before)) == "" {
			useless = append(useless, candidate.What)
			continue
		}
		err = runner.Try(ctx, candidate.What, func(ctx context.Context, t *trial.Trial) error {
			return applyUpdate(ctx, t, change.From, before, candidate, after)
		})
		if err == nil || !trial.Refused(err) {
			return err
		}
		refusals = append(refusals, err.Error())
	}
	if len(useless) > 0 {
		return fmt.Errorf("expected a change of %s to have an effect\nfound none: a new resource reaches exactly the same final state as another one that differs in\n%s",
			change.Path, strings.Join(useless, "\n"))
	}
	return fmt.Errorf("expected a change of %s that the API server accepts\nfound none: declare Operator.Values for it or for an object around it, "+
		"or Operator.Immutable if it may never change:\n%s", change.Path, strings.Join(refusals, "\n"))
}

func applyUpdate(ctx context.Context, t *trial.Trial, from map[string]any, before state.Snapshot, candidate specgen.Candidate, after state.Snapshot) error {
	t.Start(operatortest.RunOptions{})
	resource := t.Resource(from)
	if err := t.Create(ctx, resource); err != nil {
		return err
	}
	if err := t.ConvergeTo(ctx, resource, before, "a resource to reach the same final state as an earlier one with the same spec"); err != nil {
		return err
	}
	if err := t.SetSpec(ctx, resource, candidate.To); err != nil {
		return err
	}
	if err := t.ConvergeTo(ctx, resource, after, "the same final state as that of a new resource with that spec"); err != nil {
		return fmt.Errorf("after the change of %s: %w", candidate.What, err)
	}
	return nil
}

// expectEffect returns an error if a changed spec leads to the same final state as the sample's. A trial can't show
// whether an operator carries out such a change.
func expectEffect(runner *trial.Runner, spec map[string]any, made, changed state.Snapshot) error {
	if withoutSpecs(runner, changed).Difference(withoutSpecs(runner, made)) != "" {
		return nil
	}
	return fmt.Errorf("expected the change of the sample's spec to %s to have an effect\nfound none: a new resource reaches exactly the same final state with either spec; "+
		"declare Operator.Values that make a difference, or check what Operator.Normalize removes", specgen.OneLine(spec))
}

// withoutSpecs returns a state without the resources' own specs, which are not the operator's work.
func withoutSpecs(runner *trial.Runner, found state.Snapshot) state.Snapshot {
	work := maps.Clone(found)
	for key, content := range found {
		fields, ok := content.(map[string]any)
		if ok && fields["kind"] == runner.Sample.GetKind() && fields["apiVersion"] == runner.Sample.GetAPIVersion() {
			work[key] = without(fields, "spec")
		}
	}
	return work
}

func without(fields map[string]any, name string) map[string]any {
	rest := maps.Clone(fields)
	delete(rest, name)
	return rest
}

// tryImmutable expects the API server to refuse every change to an immutable field.
func tryImmutable(ctx context.Context, runner *trial.Runner, known *specgen.Specs, path string) error {
	changes := known.ChangesOf(path)
	return runner.Try(ctx, path+" can't be changed", func(ctx context.Context, t *trial.Trial) error {
		resource := t.Resource(nil)
		if err := t.Create(ctx, resource); err != nil {
			return err
		}
		tried := 0
		for _, candidate := range changes {
			if _, err := runner.Admits(ctx, candidate.To); trial.Refused(err) {
				continue // it would be refused whether the field may change or not
			}
			tried++
			if err := refuses(ctx, t, resource, candidate); err != nil {
				return err
			}
		}
		if tried == 0 {
			return fmt.Errorf("expected a second valid value for %s, to check that it can't be changed\nfound none: declare Operator.Values for it", path)
		}
		return nil
	})
}

func refuses(ctx context.Context, t *trial.Trial, resource *unstructured.Unstructured, candidate specgen.Candidate) error {
	err := t.Allows(ctx, resource, candidate.To)
	if err == nil {
		return fmt.Errorf("expected the API server to refuse a change of %s, which Operator.Immutable forbids\nfound that it accepts the change: "+
			"is a rule such as self == oldSelf missing from the definition?", candidate.What)
	}
	if !trial.Refused(err) {
		return err
	}
	return nil
}

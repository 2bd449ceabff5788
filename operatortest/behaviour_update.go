package operatortest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// tries is how many values of one field are tried until one makes a difference.
const tries = 3

var update = behaviour{
	name:    "update",
	promise: "puts every change of the spec into effect, and leaves nothing of the old one behind",
	advice: "what is compared with the children: every field of the spec must end up in what they should be like, also when they exist already; " +
		"a child under a former name must be found (by its controller reference) and deleted; a field that is gone from the spec must be taken back; " +
		"if only a condition differs that tells of the change itself: remove it in Operator.Normalize",
	check: func(ctx context.Context, lab *lab) error {
		known, err := lab.specs(ctx)
		if err != nil {
			return err
		}
		changes, unknown := known.changes()
		if len(unknown) > 0 {
			return fmt.Errorf("expected a second valid value for each field of the spec, to change it to\n"+
				"found none for %s, whose schema doesn't tell enough: declare Operator.Values for each, or for an object around it", strings.Join(unknown, ", "))
		}
		immutable := known.immutable
		if len(changes)+len(immutable) == 0 {
			return errors.New("expected a spec with fields to change\nfound none in the schema")
		}
		return each(ctx, len(changes)+len(immutable), func(ctx context.Context, i int) error {
			if i < len(changes) {
				return lab.update(ctx, known, changes[i])
			}
			return lab.keep(ctx, known, immutable[i-len(changes)])
		})
	},
}

// update makes one change on a converged resource, with the first candidate that
// the API server accepts and that makes the difference it should make.
func (l *lab) update(ctx context.Context, known *specs, change change) error {
	before, err := l.wanted(ctx, known, change.from)
	if err != nil {
		return err
	}
	var useless, refusals []string
	for _, candidate := range change.candidates {
		if len(useless) == tries {
			break
		}
		if _, err := l.admits(ctx, candidate.to); err != nil {
			if !refused(err) {
				return err
			}
			refusals = append(refusals, err.Error())
			continue
		}
		after, err := l.wanted(ctx, known, candidate.to)
		if err != nil {
			return fmt.Errorf("%s: %w", candidate.what, err)
		}
		if change.effective && l.work(after).difference(l.work(before)) == "" {
			useless = append(useless, candidate.what)
			continue
		}
		err = l.try(ctx, func(ctx context.Context, trial *trial) error {
			return trial.update(ctx, change.from, before, candidate, after)
		})
		if err == nil || !refused(err) {
			return err
		}
		refusals = append(refusals, err.Error())
	}
	if len(useless) > 0 {
		return fmt.Errorf("expected a change of %s to have an effect\nfound none: a new resource ends exactly like another one that differs in\n%s",
			change.path, strings.Join(useless, "\n"))
	}
	return fmt.Errorf("expected a change of %s that the API server accepts\nfound none: declare Operator.Values for it or for an object around it, "+
		"or Operator.Immutable if it may never change:\n%s", change.path, strings.Join(refusals, "\n"))
}

func (t *trial) update(ctx context.Context, from map[string]any, before state, candidate candidate, after state) error {
	t.start(RunOptions{})
	resource := t.resource(from)
	if err := t.create(ctx, resource); err != nil {
		return err
	}
	if err := t.convergeTo(ctx, resource, before, "a resource to end like an earlier one of the same spec"); err != nil {
		return err
	}
	if err := t.respec(ctx, resource, candidate.to); err != nil {
		return err
	}
	if err := t.convergeTo(ctx, resource, after, "the same end as that of a new resource with that spec"); err != nil {
		return fmt.Errorf("after the change of %s: %w", candidate.what, err)
	}
	return nil
}

// expectEffect returns an error if a changed spec ends like the sample's: then nothing would show whether an operator
// follows the change.
func (l *lab) expectEffect(spec map[string]any, made, changed state) error {
	if l.work(changed).difference(l.work(made)) != "" {
		return nil
	}
	return fmt.Errorf("expected the change of the sample's spec to %s to have an effect\nfound none: a new resource ends exactly like another one; "+
		"declare Operator.Values that make a difference, or see what Operator.Normalize removes", oneLine(spec))
}

// work is a state without the resources' own specs, which are not the operator's work.
func (l *lab) work(found state) state {
	work := maps.Clone(found)
	for key, content := range found {
		fields, ok := content.(map[string]any)
		if ok && fields["kind"] == l.sample.GetKind() && fields["apiVersion"] == l.sample.GetAPIVersion() {
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

// keep expects the API server to refuse every change of an immutable field.
func (l *lab) keep(ctx context.Context, known *specs, path string) error {
	changes := known.changesOf(path)
	return l.try(ctx, func(ctx context.Context, trial *trial) error {
		resource := trial.resource(nil)
		if err := trial.create(ctx, resource); err != nil {
			return err
		}
		tried := 0
		for _, candidate := range changes {
			if _, err := l.admits(ctx, candidate.to); refused(err) {
				continue // it would be refused whether the field may change or not
			}
			tried++
			if err := trial.refuses(ctx, resource, candidate); err != nil {
				return err
			}
		}
		if tried == 0 {
			return fmt.Errorf("expected a second valid value for %s, to see that nobody can change it\nfound none: declare Operator.Values for it", path)
		}
		return nil
	})
}

func (t *trial) refuses(ctx context.Context, resource *unstructured.Unstructured, candidate candidate) error {
	err := t.allows(ctx, resource, candidate.to)
	if err == nil {
		return fmt.Errorf("expected the API server to refuse a change of %s, which Operator.Immutable forbids\nfound that it accepts it: "+
			"is a rule such as self == oldSelf missing from the definition?", candidate.what)
	}
	if !refused(err) {
		return err
	}
	return nil
}

// changesOf are the changes of an immutable field, were it not immutable.
func (s *specs) changesOf(path string) []candidate {
	free := *s
	free.immutable = slices.DeleteFunc(slices.Clone(s.immutable), func(other string) bool { return other == path })
	changes, _ := free.changes()
	var candidates []candidate
	for _, change := range changes {
		if equal(change.from, s.base) && (change.path == path || below(change.path, path)) {
			candidates = append(candidates, change.candidates...)
		}
	}
	return candidates
}

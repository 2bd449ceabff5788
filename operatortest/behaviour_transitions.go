package operatortest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// refusedFor is how long a spec that can't be met is watched for a claim that it is.
const refusedFor = quiet

var transitions = behaviour{
	name:    "transitions",
	promise: "ends with the same result whatever the spec was before",
	advice: "what remembers the past: compute what is wanted from the spec of now alone, compare it with what there is, and take back what is too much; " +
		"a condition must be computed anew each time, and what stands in the way must be watched, or waited for with RequeueAfter; " +
		"a condition that is meant to tell of the former spec, such as one that is True for a while after a change, belongs into Operator.Normalize, which removes it",
	check: func(ctx context.Context, lab *lab) error {
		known, err := lab.specs(ctx)
		if err != nil {
			return err
		}
		search := lab.newTravels(known)
		planned, err := search.plan(ctx)
		if err != nil {
			return err
		}
		if err := search.prepareEnds(ctx, planned); err != nil {
			return err
		}
		return search.tryAll(ctx, planned)
	},
}

// prepareEnds finds out side by side what new resources of all specs end like.
func (s *travels) prepareEnds(ctx context.Context, planned []journey) error {
	ends := map[string]map[string]any{}
	for _, journey := range planned {
		for _, spec := range journey.specs {
			ends[oneLine(spec)] = spec
		}
	}
	specs := slices.Collect(maps.Values(ends))
	return each(ctx, len(specs), func(ctx context.Context, i int) error {
		_, err := s.end(ctx, specs[i])
		return err
	})
}

// tryAll tries the journeys, and the detours over specs that can't be met.
func (s *travels) tryAll(ctx context.Context, planned []journey) error {
	var detours []func(context.Context) error
	for _, unmeetable := range s.operator.Unmeetable {
		for _, detour := range []detour{fromMet, fromTheStart, obstacleGone} {
			detours = append(detours, func(ctx context.Context) error { return s.detour(ctx, unmeetable, detour) })
		}
	}
	err := each(ctx, len(planned)+len(detours), func(ctx context.Context, i int) error {
		if i >= len(planned) {
			return detours[i-len(planned)](ctx)
		}
		if !planned[i].leads() {
			return nil
		}
		err := s.verdict(ctx, planned[i])
		if errors.Is(err, errNoWay) {
			return nil
		}
		return err
	})
	if i := slices.IndexFunc(planned, s.failed); i >= 0 && ctx.Err() == nil {
		return s.report(ctx, i, planned[i])
	}
	if err == nil && !slices.ContainsFunc(planned, s.arrived) {
		return fmt.Errorf("expected the API server to allow a change from one spec to another\nfound that it refuses all of these: "+
			"declare Operator.Immutable for fields that nobody may change, and Operator.Values for others\n%s", planned)
	}
	return err
}

// detour is a way to a spec that can't be met and back.
type detour string

const (
	fromMet      detour = "a resource that was met became one whose %s, and was mended"
	fromTheStart detour = "a new resource's %s, and it was mended"
	obstacleGone detour = "a resource's %s, and then that went away"
)

// detour leads a resource to a spec that can't be met, and from there to one that can.
func (l *lab) detour(ctx context.Context, unmeetable Unmeetable, detour detour) error {
	spec, err := l.unmeetableSpec(unmeetable)
	if err != nil {
		return err
	}
	wanted, err := l.fresh(ctx, nil)
	if err != nil {
		return err
	}
	circumstances := fmt.Sprintf(string(detour), unmeetable.Name)
	return l.try(ctx, func(ctx context.Context, trial *trial) error {
		obstacle, err := trial.prepareObstacle(ctx, unmeetable, spec)
		if err != nil {
			return err
		}
		if detour == obstacleGone {
			if obstacle == nil {
				return nil // only what has the name of a child is known to be the obstacle
			}
			if wanted, err = l.fresh(ctx, spec); err != nil {
				return err
			}
		}
		trial.start(RunOptions{})
		resource := trial.resource(nil)
		if detour == fromTheStart {
			resource = trial.resource(spec)
		}
		if err := trial.create(ctx, resource); err != nil {
			return err
		}
		if detour != fromTheStart {
			if err := trial.converge(ctx, resource); err != nil {
				return err
			}
		}
		if err := trial.staysUnmet(ctx, resource, unmeetable); err != nil {
			return fmt.Errorf("%s: %w", circumstances, err)
		}
		if detour == obstacleGone {
			err = trial.remove(ctx, obstacle)
		} else {
			err = trial.respec(ctx, resource, l.sampleSpec())
		}
		if err != nil {
			return err
		}
		if err := trial.convergeTo(ctx, resource, wanted, "the same end as that of a new resource"); err != nil {
			return fmt.Errorf("%s: %w", circumstances, err)
		}
		return nil
	})
}

// unmeetableSpec is the sample's spec with the patch applied.
func (l *lab) unmeetableSpec(unmeetable Unmeetable) (map[string]any, error) {
	content, err := json.Marshal(map[string]any{"spec": l.sampleSpec()})
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
	if err == nil && oneLine(spec) == oneLine(l.sampleSpec()) {
		err = fmt.Errorf("expected the patch of Operator.Unmeetable %q to change the sample's spec\nfound that it changes nothing: %s",
			unmeetable.Name, unmeetable.Patch)
	}
	return spec, err
}

// prepareObstacle puts up what stands in the way, and returns it if it has the
// kind and name of a child.
func (t *trial) prepareObstacle(ctx context.Context, unmeetable Unmeetable, spec map[string]any) (*unstructured.Unstructured, error) {
	if err := t.putUp(ctx, unmeetable); err != nil {
		return nil, err
	}
	resource := t.resource(spec)
	for _, declared := range t.operator.Children {
		objects, err := t.list(ctx, declared.Kind)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if object.GetName() == declared.nameFor(resource) {
				return object, nil
			}
		}
	}
	return nil, nil
}

// staysUnmet makes a resource's spec unmeetable, and expects the status to say so and to go on saying so.
func (t *trial) staysUnmet(ctx context.Context, resource *unstructured.Unstructured, unmeetable Unmeetable) error {
	if err := t.obstruct(ctx, resource, unmeetable); err != nil {
		return err
	}
	return t.throughout(ctx, refusedFor, "the status to go on saying that the spec is not met", func(ctx context.Context) error {
		return t.unmet(ctx, resource)
	})
}

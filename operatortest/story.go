package operatortest

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/operatortest/traffic"
)

// story is the life of a resource: it is made, changed and deleted.
type story struct {
	change map[string]any
	// made and changed are what fresh resources of the two specs end like.
	made, changed state
}

func (l *lab) story(ctx context.Context) (*story, error) {
	change, err := l.change(ctx)
	if err != nil {
		return nil, err
	}
	made, err := l.fresh(ctx, nil)
	if err != nil {
		return nil, err
	}
	changed, err := l.fresh(ctx, change)
	if err != nil {
		return nil, err
	}
	return &story{change: change, made: made, changed: changed}, l.expectEffect(change, made, changed)
}

// tell plays a story to its end. The resource must get to where a fresh one
// gets, and leave nothing. A hook runs at the end of each chapter, before it is looked at again.
func (t *trial) tell(ctx context.Context, story *story, hook func(context.Context) error) error {
	resource := t.resource(nil)
	chapters := []struct {
		begin, end func() error
	}{
		{
			begin: func() error { return t.create(ctx, resource) },
			end:   func() error { return t.convergeTo(ctx, resource, story.made, "the new resource to end like any other") },
		},
		{
			begin: func() error { return t.respec(ctx, resource, story.change) },
			end: func() error {
				return t.convergeTo(ctx, resource, story.changed, "the changed resource to end like one that had this spec from the beginning")
			},
		},
		{
			begin: func() error { return t.remove(ctx, resource) },
			end:   func() error { return t.gone(ctx, resource, "it was made, changed and deleted") },
		},
	}
	for _, chapter := range chapters {
		if err := chapter.begin(); err != nil {
			return err
		}
		if err := chapter.end(); err != nil {
			return err
		}
		if err := hook(ctx); err != nil {
			return err
		}
		if err := chapter.end(); err != nil {
			return err
		}
	}
	return nil
}

// requestsFor returns what tells requests for objects of some kinds from others.
func (l *lab) requestsFor(kinds ...schema.GroupVersionKind) (func(traffic.Request) bool, error) {
	var resources []schema.GroupResource
	for _, kind := range kinds {
		mapping, err := l.cluster.admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("find the resource of kind %s: %w", kind.Kind, err)
		}
		resources = append(resources, mapping.Resource.GroupResource())
	}
	return func(request traffic.Request) bool {
		return slices.Contains(resources, schema.GroupResource{Group: request.Group, Resource: request.Resource})
	}, nil
}

// childNames are the kinds and names of the children that a resource of a spec should have, in the order of their declarations.
func (l *lab) childNames(spec map[string]any) []string {
	var names []string
	for _, declared := range l.operator.Children {
		if name := declared.nameFor(l.resource(spec)); name != "" {
			names = append(names, declared.Kind.Kind+"/"+name)
		}
	}
	return names
}

// changeInPlace is like change, but leaves the names of the children as they
// are. It is nil if no field is known that may be changed so.
func (l *lab) changeInPlace(ctx context.Context) (map[string]any, error) {
	known, err := l.specs(ctx)
	if err != nil {
		return nil, err
	}
	names := l.childNames(known.base)
	var renaming []string
	var candidates []map[string]any
	changes, _ := known.changes()
	for _, change := range changes {
		for _, candidate := range change.candidates {
			if !slices.Equal(l.childNames(candidate.to), names) {
				renaming = append(renaming, change.place)
			} else if change.effective {
				candidates = append(candidates, candidate.to)
			}
		}
	}
	most := known.otherThan(renaming)
	if !equal(most, known.base) {
		candidates = slices.Insert(candidates, 0, most)
	}
	return l.firstAllowed(ctx, candidates)
}

// firstAllowed is the first spec to which the API server lets the sample be changed, nil if there is none.
func (l *lab) firstAllowed(ctx context.Context, candidates []map[string]any) (allowed map[string]any, err error) {
	err = l.try(ctx, func(ctx context.Context, trial *trial) error {
		stored := l.resource(nil)
		if err := trial.create(ctx, stored); err != nil {
			return err
		}
		for _, candidate := range candidates {
			err := trial.allows(ctx, stored, candidate)
			if err == nil {
				allowed = candidate
				return nil
			}
			if !refused(err) {
				return err
			}
		}
		return nil
	})
	return allowed, err
}

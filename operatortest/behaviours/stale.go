package behaviours

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/testcluster"
	"example.com/operator-workshop/operatortest/traffic"
)

// An operator relies on its caches, which can always lag behind. The cases cover three ways in which this can mislead
// the operator:
//   - an intermediate state: the operator has done part of its work, and does not see that yet;
//   - a stale state: someone has changed an object, and the operator still sees the old version;
//   - an unobserved state: something came and went, and the operator sees only what followed.
//
// The three terms are from the paper on Sieve (OSDI 2022). Sieve produces an intermediate state differently: it restarts
// the operator after a write, as the behaviour "crash" does.
//
// Of the operator's reads from the API server, only the watches are held back. The others are up to date.
var stale = behaviour{
	name:    "stale",
	promise: "does no harm while its caches are out of date, and recovers once they are current",
	advice: "what a write relies on: derive a child's name from the resource, so that it can't be created twice; send the resourceVersion or UID that was read " +
		"with each patch or delete, so that it can't hit another object; set observedGeneration to the generation of the spec that was read, not to the newest; " +
		"identify a resource by its UID, not by its name",
	check: func(ctx context.Context, runner *trial.Runner) error {
		setup, err := newStaleSetup(ctx, runner)
		if err != nil {
			return err
		}
		cases := setup.cases()
		return trial.Each(ctx, len(cases), func(ctx context.Context, i int) error {
			err := runner.Try(ctx, cases[i].what, func(ctx context.Context, t *trial.Trial) error {
				b, err := newStaleTrial(t, setup)
				if err != nil {
					return err
				}
				return cases[i].play(ctx, b)
			})
			if err != nil {
				return fmt.Errorf("%s:\n%w", cases[i].what, err)
			}
			return nil
		})
	},
}

// staleSetup contains what the cases of the behaviour have in common.
type staleSetup struct {
	made state.Snapshot
	// change is a spec that keeps the children's names; changed is a fresh resource's final state with that spec.
	change  map[string]any
	changed state.Snapshot
	// hasChildren means that the sample has children; hasReplaceable means that at least one of the declared children is
	// replaceable (see isReplaceable).
	hasChildren, hasReplaceable bool
}

func newStaleSetup(ctx context.Context, runner *trial.Runner) (*staleSetup, error) {
	made, err := runner.Fresh(ctx, nil)
	if err != nil {
		return nil, err
	}
	found := &staleSetup{made: made, hasChildren: len(runner.ChildNames(nil)) > 0, hasReplaceable: slices.ContainsFunc(runner.Operator.Children, isReplaceable)}
	if found.change, err = changeInPlace(ctx, runner); err != nil {
		return nil, err
	}
	if found.change == nil {
		return nil, errors.New("expected a change of the spec that keeps the children's names, so that it can be hidden from the operator\n" +
			"found none: declare Operator.Values for a field that can be changed that way")
	}
	if found.changed, err = runner.Fresh(ctx, found.change); err != nil {
		return nil, err
	}
	return found, expectEffect(runner, found.change, found.made, found.changed)
}

// isReplaceable reports whether the operator must leave alone an object that replaces the child and has no controller.
// A child with a generated name can't be replaced: the operator would make one with another name. An object that
// replaces a retained child may be one that an earlier resource has left, so the operator may use it.
func isReplaceable(child operatortest.Child) bool { return !child.Generated && !child.Retained }

type staleCase struct {
	what string
	play func(context.Context, *staleTrial) error
}

func (s *staleSetup) cases() []staleCase {
	cases := []staleCase{
		{"the operator does not see its own writes to the resource", ownWritesUnseen},
		{"the resource was deleted and recreated with another spec while the operator saw nothing", recreationUnseen},
	}
	if s.hasChildren {
		cases = append(cases,
			staleCase{"the operator does not see the children it has made", childrenUnseen},
			staleCase{"others wrote to the children, and the operator sees only that the spec has changed", foreignWritesUnseen},
			staleCase{"the spec has changed, and the operator sees only that a child is gone", changeUnseen},
		)
	}
	if s.hasReplaceable {
		cases = append(cases, staleCase{"someone else has replaced a child with another object, and the operator sees only that the spec has changed", replacementUnseen})
	}
	return cases
}

// staleTrial is a trial whose operator can be kept from seeing what is happening.
type staleTrial struct {
	*trial.Trial
	*staleSetup
	tap      *traffic.Tap
	operator *trial.Instance
	resource *unstructured.Unstructured
	// ofResources and ofChildren match the watches of resources and of children.
	ofResources, ofChildren func(traffic.Request) bool
}

func newStaleTrial(t *trial.Trial, setup *staleSetup) (*staleTrial, error) {
	resources, err := t.RequestsFor(t.Sample.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	children, err := t.RequestsFor(t.ChildKinds()...)
	return &staleTrial{
		Trial: t, staleSetup: setup, tap: traffic.New(), resource: t.Resource(nil), ofResources: resources, ofChildren: children,
	}, err
}

// begin starts an operator that sees everything, creates the resource, and waits until the operator is at rest.
func (b *staleTrial) begin(ctx context.Context) error {
	b.operator = b.StartOn(b.tap, operatortest.RunOptions{})
	_, err := b.Establish(ctx, b.operator, b.resource)
	return err
}

// waitStill waits until the operator is done, so that a broken operator has time to do harm.
func (b *staleTrial) waitStill(ctx context.Context) error {
	return b.untilStill(ctx, "the operator to keep running", func(context.Context) error { return nil })
}

// untilStill checks a condition until the operator is done. A correct operator may keep retrying what the API server
// refuses because of the stale cache, so untilStill also ends after a fixed number of checks.
func (b *staleTrial) untilStill(ctx context.Context, what string, condition func(context.Context) error) error {
	var stillness trial.Stillness
	left := 10 * int(trial.Quiet/testcluster.PollInterval)
	over := func() bool {
		left--
		return stillness.Still(b.operator.Tap.Requests()) || left <= 0
	}
	return b.Until(ctx, over, what, condition)
}

// waitHeld waits until a hold has kept an event from the operator: from then on, the operator's cache is stale.
func (b *staleTrial) waitHeld(ctx context.Context, match func(traffic.Request) bool, what string) error {
	return b.Eventually(ctx, what, func(context.Context) error {
		if b.tap.Kept(match) == 0 {
			return errors.New("no such event has arrived yet")
		}
		return nil
	})
}

// shown waits until the watches that have shown an object to the operator have shown this version of it, or a later
// one. Before that, the operator can't react to it.
func (b *staleTrial) shown(ctx context.Context, match func(traffic.Request) bool, object *unstructured.Unstructured) error {
	return b.seen(ctx, match, object, 0)
}

// removalShown is like shown, but for the deletion of an object, or for its deletionTimestamp if a finalizer blocks the
// deletion.
func (b *staleTrial) removalShown(ctx context.Context, match func(traffic.Request) bool, object *unstructured.Unstructured) error {
	return b.seen(ctx, match, object, 1)
}

func (b *staleTrial) seen(ctx context.Context, match func(traffic.Request) bool, object *unstructured.Unstructured, least int) error {
	what := fmt.Sprintf("the operator's watches to show the last change of %s %s", object.GetKind(), object.GetName())
	return b.Within(ctx, b.Operator.Timeout, what, func(context.Context) error {
		for _, version := range b.tap.Shown(match, object.GetUID()) {
			newer, err := resourceversion.CompareResourceVersion(version.ResourceVersion, object.GetResourceVersion())
			if err != nil {
				return err
			}
			if !version.Deleted && newer < least {
				return fmt.Errorf("the latest version that one of them has shown is %s", version.ResourceVersion)
			}
		}
		return nil
	})
}

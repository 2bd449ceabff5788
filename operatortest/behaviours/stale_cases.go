package behaviours

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

// ownWritesUnseen is an intermediate state: the operator has written a finalizer, a status or the ID of something
// outside Kubernetes, and its next reconcile doesn't see that. It catches operators that create something again
// because they don't see that they have recorded it.
func ownWritesUnseen(ctx context.Context, b *staleTrial) error {
	first := holdFirstWrite()
	b.tap.SetRule(first.rule)
	b.operator = b.StartOn(b.tap, operatortest.RunOptions{})
	if err := b.Create(ctx, b.resource); err != nil {
		return err
	}
	if err := b.Eventually(ctx, "the operator to begin its first write", func(context.Context) error { return first.reached() }); err != nil {
		return err
	}
	release := b.tap.Hold(b.ofResources)
	close(first.release)
	if err := b.waitHeld(ctx, b.ofResources, "the operator to write to the resource, which it can't see"); err != nil {
		return err
	}
	if err := b.waitStill(ctx); err != nil {
		return err
	}
	wanted, err := b.touchMade(ctx, b.made)
	if err != nil {
		return err
	}
	if err := b.waitStill(ctx); err != nil {
		return err
	}
	release(traffic.Late)
	return b.ConvergeTo(ctx, b.resource, wanted, "the same final state as if the operator had seen everything immediately")
}

// touchMade patches the existing children, so that the operator looks at the resource again. It returns the wanted
// state with these patches.
func (b *staleTrial) touchMade(ctx context.Context, wanted state.Snapshot) (state.Snapshot, error) {
	for _, kind := range b.ChildKinds() {
		objects, err := b.List(ctx, kind)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if !b.IsChild(object, b.resource) {
				continue
			}
			if err := b.Patch(ctx, object, trial.ForeignPatch); err != nil {
				return nil, err
			}
			if err := b.shown(ctx, b.ofChildren, object); err != nil {
				return nil, err
			}
			if wanted, err = wanted.With(b.Key(object), []string{trial.ForeignPatch}); err != nil {
				return nil, err
			}
		}
	}
	return wanted, nil
}

// childrenUnseen is an intermediate state: the children exist, and a reconcile after a write to the resource finds none
// in the cache. It catches children that are created twice.
func childrenUnseen(ctx context.Context, b *staleTrial) error {
	b.operator = b.StartOn(b.tap, operatortest.RunOptions{})
	if err := b.WaitSynced(ctx, b.operator); err != nil {
		return err
	}
	release := b.tap.Hold(b.ofChildren)
	if err := b.Create(ctx, b.resource); err != nil {
		return err
	}
	made := func(ctx context.Context) error {
		return b.Children(ctx, b.resource, func(operatortest.Child, *unstructured.Unstructured) error { return nil })
	}
	if err := b.Eventually(ctx, "the operator to make the children", made); err != nil {
		return err
	}
	if err := b.Touch(ctx, b.resource); err != nil {
		return err
	}
	if err := b.shown(ctx, b.ofResources, b.resource); err != nil {
		return err
	}
	if err := b.waitStill(ctx); err != nil {
		return err
	}
	release(traffic.Late)
	return b.ConvergeTo(ctx, b.resource, b.made, "the same final state as if the operator had seen everything immediately")
}

// foreignWritesUnseen is a stale state: the operator changes children although it has seen only an old version of them.
// It catches an update that reverts what others wrote.
func foreignWritesUnseen(ctx context.Context, b *staleTrial) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	releaseResources, releaseChildren := b.tap.Hold(b.ofResources), b.tap.Hold(b.ofChildren)
	wanted := b.changed
	err := b.Children(ctx, b.resource, func(declared operatortest.Child, child *unstructured.Unstructured) error {
		foreign, err := b.PatchForeign(ctx, declared, child)
		if err != nil {
			return err
		}
		wanted, err = wanted.With(b.Key(child), foreign)
		return err
	})
	if err != nil {
		return err
	}
	if err := b.actOnChange(ctx, releaseResources); err != nil {
		return err
	}
	// Use Latest: if the operator saw the version that others wrote, it could restore what it has overwritten.
	releaseChildren(traffic.Latest)
	return b.ConvergeTo(ctx, b.resource, wanted, "the children to be changed, and what others wrote to them to stay")
}

// actOnChange changes the spec, shows the operator only this change, and waits until the operator has acted on it.
func (b *staleTrial) actOnChange(ctx context.Context, releaseResources func(traffic.Release)) error {
	before := len(b.operator.Writes())
	if err := b.SetSpec(ctx, b.resource, b.change); err != nil {
		return err
	}
	releaseResources(traffic.Late)
	acts := func(context.Context) error {
		if len(b.operator.Writes()) == before {
			return errors.New("it has written nothing")
		}
		return nil
	}
	if err := b.Eventually(ctx, "the operator to act on the change of the spec", acts); err != nil {
		return err
	}
	return b.waitStill(ctx)
}

// recreationUnseen is an unobserved state: while the operator sees nothing, the resource is replaced with another one
// of the same name, which has another spec. It catches operators that identify a resource by its name alone. An
// operator with a finalizer has to see the deletion.
func recreationUnseen(ctx context.Context, b *staleTrial) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	releaseResources, releaseChildren := b.tap.Hold(b.ofResources), b.tap.Hold(b.ofChildren)
	old := b.resource
	if err := b.Get(ctx, old); err != nil {
		return err
	}
	if err := b.Delete(ctx, old); err != nil {
		return err
	}
	if len(old.GetFinalizers()) > 0 {
		releaseResources(traffic.Latest)
		if err := b.removalShown(ctx, b.ofResources, old); err != nil {
			return err
		}
		if err := b.waitStill(ctx); err != nil {
			return err
		}
		if b.Get(ctx, old) == nil { // perhaps the operator keeps its finalizer until it sees that the children are gone
			releaseChildren(traffic.Latest)
		}
	}
	if err := b.WaitGone(ctx, old, "it was deleted while the operator's watches were held back"); err != nil {
		return err
	}
	b.resource = b.Resource(b.change)
	if err := b.Create(ctx, b.resource); err != nil {
		return err
	}
	if err := b.waitStill(ctx); err != nil {
		return err
	}
	releaseResources(traffic.Latest)
	releaseChildren(traffic.Latest)
	return b.ConvergeTo(ctx, b.resource, b.changed, "the resource to reach the same final state as one without a predecessor")
}

// changeUnseen is a stale state: the operator repairs a child according to a spec that the resource no longer has.
// The operator can't know that. The trial catches a status that says that the new spec is already met.
func changeUnseen(ctx context.Context, b *staleTrial) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	release := b.tap.Hold(b.ofResources)
	if err := b.SetSpec(ctx, b.resource, b.change); err != nil {
		return err
	}
	err := b.Children(ctx, b.resource, func(_ operatortest.Child, child *unstructured.Unstructured) error {
		if err := b.Delete(ctx, child); err != nil {
			return err
		}
		return b.removalShown(ctx, b.ofChildren, child)
	})
	if err != nil {
		return err
	}
	honest := func(ctx context.Context) error {
		if err := b.Get(ctx, b.resource); err != nil || b.Met(b.resource) != nil {
			return err
		}
		found, err := b.State(ctx)
		if err != nil {
			return err
		}
		if difference := found.Difference(b.changed); difference != "" {
			return fmt.Errorf("the status says that it is met, in this state (- is expected, + is found):\n%s", difference)
		}
		return nil
	}
	if err := b.untilStill(ctx, "the status not to say that the new spec is met before it is", honest); err != nil {
		return err
	}
	release(traffic.Late)
	return b.ConvergeTo(ctx, b.resource, b.changed, "the spec to be met once the operator sees it")
}

// replacementUnseen is an unobserved state: a child was deleted, and an object with the same name that is not the
// operator's took its place. It catches writes that identify a child by its name alone.
func replacementUnseen(ctx context.Context, b *staleTrial) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	releaseResources, releaseChildren := b.tap.Hold(b.ofResources), b.tap.Hold(b.ofChildren)
	var replacements []*unstructured.Unstructured
	err := b.Children(ctx, b.resource, func(declared operatortest.Child, child *unstructured.Unstructured) error {
		if !isReplaceable(declared) {
			return nil
		}
		replacement, err := b.replace(ctx, child)
		replacements = append(replacements, replacement)
		return err
	})
	if err != nil {
		return err
	}
	if err := b.actOnChange(ctx, releaseResources); err != nil {
		return err
	}
	releaseChildren(traffic.Latest)
	unmet := func(ctx context.Context) error { return b.Unmet(ctx, b.resource) }
	if err := b.Eventually(ctx, "the status to say that the resource can't have its children", unmet); err != nil {
		return err
	}
	for _, replacement := range replacements {
		if err := unchanged(ctx, b.Trial, replacement); err != nil {
			return err
		}
		if err := b.Delete(ctx, replacement); err != nil {
			return err
		}
	}
	return b.ConvergeTo(ctx, b.resource, b.changed, "the operator to converge once the other objects are gone")
}

// replace replaces a child with someone else's object.
func (b *staleTrial) replace(ctx context.Context, child *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := b.Delete(ctx, child); err != nil {
		return nil, err
	}
	gone := func(ctx context.Context) error {
		err := b.Cluster.Admin.Get(ctx, client.ObjectKeyFromObject(child), child.DeepCopy())
		if err == nil {
			return errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	}
	if err := b.Within(ctx, b.Operator.Timeout, fmt.Sprintf("%s %s to be gone", child.GetKind(), child.GetName()), gone); err != nil {
		return nil, err
	}
	return makeForeign(ctx, b.Trial, child, false)
}

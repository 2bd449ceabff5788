package behaviours

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

// timeTravel is another case from the paper on Sieve (OSDI 2022), in addition to those in stale.go: a restarted
// operator connects to another API server, whose watch cache lags behind, and sees again what it has already acted on.
var timeTravel = behaviour{
	name:    "time-travel",
	promise: "does no harm when it is restarted and an API server that lags behind shows it the past",
	advice: "deletes and other writes that can't be undone: send the UID that was read as a precondition, or first read the object from the API server, not from the cache; " +
		"derive a child's name from the resource; \"already exists\" and a conflict mean that the cache is out of date, so return the error and read again",
	check: func(ctx context.Context, runner *trial.Runner) error {
		life, _, err := undisturbed(ctx, runner)
		if err != nil {
			return err
		}
		past := []journey{
			{"the resource had no children yet", unmade},
			{"the spec was different, and the operator had not acted on it yet", changeAndBack(life.change)},
			{"the resource was an earlier one of the same name, and was being deleted", makeAgain},
		}
		return trial.Each(ctx, len(past), func(ctx context.Context, i int) error {
			err := runner.Try(ctx, past[i].what, func(ctx context.Context, t *trial.Trial) error {
				return (&traveller{Trial: t}).travel(ctx, past[i])
			})
			if err != nil {
				return fmt.Errorf("shown a past in which %s:\n%w", past[i].what, err)
			}
			return nil
		})
	},
}

// journey is an earlier state that an operator is shown again. live takes a resource through that state, waits until
// the operator is at rest, and records the revision at which the state ends.
type journey struct {
	what string
	live func(context.Context, *traveller) error
}

// traveller is a trial whose second operator is shown an earlier state.
type traveller struct {
	*trial.Trial
	operator *trial.Instance
	resource *unstructured.Unstructured
	// revision is the resource version at which the past ends. It is empty if there is no such past.
	revision string
}

func (t *traveller) travel(ctx context.Context, past journey) error {
	t.operator = t.Start(operatortest.RunOptions{})
	if err := past.live(ctx, t); err != nil || t.revision == "" {
		return err
	}
	made, err := childrenOf(ctx, t.Trial, t.resource)
	if err != nil {
		return err
	}
	wanted, err := t.State(ctx)
	if err != nil {
		return err
	}
	if err := t.operator.Kill(); err != nil {
		return err
	}
	all, err := t.RequestsFor(append(t.ChildKinds(), t.Sample.GroupVersionKind())...)
	if err != nil {
		return err
	}
	ofChildren, err := t.RequestsFor(t.ChildKinds()...)
	if err != nil {
		return err
	}
	tap := traffic.New()
	showChildren, catchUp := tap.Hold(ofChildren), tap.ShowPast(t.revision, all)
	t.operator = t.StartOn(tap, operatortest.RunOptions{})
	if err := t.WaitSynced(ctx, t.operator); err != nil {
		return err
	}
	if !slices.ContainsFunc(tap.Requests(), func(request traffic.Request) bool { return request.Past != "" }) {
		t.NotTried = "the operator requests nothing that an API server may answer from its cache, so it saw only the present"
	}
	// An operator that saw a current child and an old spec could not tell that they don't belong together, so the
	// children's watches catch up last.
	catchUp()
	if err := t.WaitSynced(ctx, t.operator); err != nil {
		return err
	}
	showChildren(traffic.Late)
	if err := t.ConvergeTo(ctx, t.resource, wanted, "the same final state as before, once the operator sees the present"); err != nil {
		return err
	}
	if err := t.WaitSynced(ctx, t.operator); err != nil {
		return err
	}
	kept, err := childrenOf(ctx, t.Trial, t.resource)
	if err != nil {
		return err
	}
	for i, child := range made {
		if kept[i].GetUID() != child.GetUID() {
			return fmt.Errorf("expected %s %s to stay, because it belongs to the present\nfound that it was deleted and recreated, so any data in it is lost", child.GetKind(), child.GetName())
		}
	}
	return nil
}

// makeNew creates a resource, records the revision of its creation, and waits until the operator is at rest.
func makeNew(ctx context.Context, t *traveller) error {
	t.resource = t.Resource(nil)
	if err := t.Create(ctx, t.resource); err != nil {
		return err
	}
	t.revision = t.resource.GetResourceVersion()
	return t.rest(ctx)
}

func (t *traveller) rest(ctx context.Context) error {
	if err := t.Converge(ctx, t.resource); err != nil {
		return err
	}
	return t.WaitAtRest(ctx, t.operator)
}

// changeAndBack returns the life of a resource whose spec is changed, and is changed back once the operator has carried
// out the change. The past ends with the change. If the API server refuses to change the spec back, there is no past.
func changeAndBack(change map[string]any) func(context.Context, *traveller) error {
	return func(ctx context.Context, t *traveller) error {
		if err := makeNew(ctx, t); err != nil {
			return err
		}
		before, _, err := unstructured.NestedMap(t.resource.Object, "spec")
		if err != nil {
			return err
		}
		if err := t.SetSpec(ctx, t.resource, change); err != nil {
			return err
		}
		t.revision = t.resource.GetResourceVersion()
		if err := t.rest(ctx); err != nil {
			return err
		}
		if err := t.Allows(ctx, t.resource, before); err != nil {
			if !trial.Refused(err) {
				return err
			}
			t.revision, t.NotTried = "", "the API server refuses to change the spec back, so there is no such past"
			return nil
		}
		if err := t.SetSpec(ctx, t.resource, before); err != nil {
			return err
		}
		return t.rest(ctx)
	}
}

// unmade is the life of a new resource. The past ends when the operator has added its finalizer, or at the very
// beginning if it has none.
func unmade(ctx context.Context, t *traveller) error {
	defer t.Follow()()
	if err := makeNew(ctx, t); err != nil {
		return err
	}
	held := t.FirstVersion(t.resource.GetUID(), func(version *unstructured.Unstructured) bool { return len(version.GetFinalizers()) > 0 })
	if held != nil {
		t.revision = held.GetResourceVersion()
	}
	return nil
}

// makeAgain creates a resource, deletes it, and creates another one with its name. The past ends when the first
// resource gets a deletionTimestamp, or right before the deletion if it has no finalizer: then it never gets one.
func makeAgain(ctx context.Context, t *traveller) error {
	defer t.Follow()()
	if err := makeNew(ctx, t); err != nil {
		return err
	}
	old := t.resource
	if err := t.Get(ctx, old); err != nil {
		return err
	}
	if err := t.Delete(ctx, old); err != nil {
		return err
	}
	if err := t.WaitGone(ctx, old, "it was created and deleted"); err != nil {
		return err
	}
	past := old.GetResourceVersion()
	if len(old.GetFinalizers()) > 0 {
		ending := t.FirstVersion(old.GetUID(), func(version *unstructured.Unstructured) bool { return version.GetDeletionTimestamp() != nil })
		if ending == nil {
			return errors.New("expected the watch to have shown a version of the resource with a deletionTimestamp\nfound none")
		}
		past = ending.GetResourceVersion()
	}
	err := makeNew(ctx, t)
	t.revision = past
	return err
}

package behaviours

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

// tryNamesakes creates two resources of the same name in two namespaces, and deletes the second one. alone is the final
// state of such a resource without the other; each must reach it.
func tryNamesakes(ctx context.Context, t *trial.Trial, alone state.Snapshot) error {
	if t.NotTried = t.NoSecondNamespace(); t.NotTried != "" {
		return nil
	}
	other, err := t.Beside(ctx)
	if err != nil {
		return err
	}
	operator := t.Start(operatortest.RunOptions{})
	staying, leaving := t.Resource(nil), other.Resource(nil)
	if err := errors.Join(t.Create(ctx, staying), other.Create(ctx, leaving)); err != nil {
		return err
	}
	const what = "a resource to reach the same final state beside one of the same name in another namespace as it does alone"
	if err := t.ConvergeTo(ctx, staying, alone, what); err != nil {
		return err
	}
	if err := other.ConvergeTo(ctx, leaving, alone, what); err != nil {
		return err
	}
	if err := t.WaitAtRest(ctx, operator); err != nil {
		return err
	}
	kept, err := childrenOf(ctx, t, staying)
	if err != nil {
		return err
	}
	before := len(operator.Tap.Requests())
	if err := other.Delete(ctx, leaving); err != nil {
		return err
	}
	const circumstances = "it was deleted, and one of the same name stays in another namespace"
	if err := other.WaitGone(ctx, leaving, circumstances); err != nil {
		return err
	}
	if err := t.ConvergeTo(ctx, staying, alone, "only the deleted resource to disappear, and not the one with the same name in another namespace"); err != nil {
		return err
	}
	if err := t.WaitAtRest(ctx, operator); err != nil {
		return err
	}
	if err := stillThere(ctx, t, kept); err != nil {
		return err
	}
	return notWrittenTo(ctx, t, kept, t.WritesIn(operator, before))
}

// notWrittenTo returns an error if one of the children has changed and the operator has written to it. A write that
// changes nothing is left to the behaviour "silent". Others may write, too, such as the Deployment controller.
func notWrittenTo(ctx context.Context, t *trial.Trial, children []*unstructured.Unstructured, writes []traffic.Request) error {
	for _, child := range children {
		isAbout, err := t.RequestsFor(child.GroupVersionKind())
		if err != nil {
			return err
		}
		about := slices.DeleteFunc(slices.Clone(writes), func(request traffic.Request) bool {
			return !isAbout(request) || request.Name != child.GetName()
		})
		found := child.DeepCopy()
		if err := t.Get(ctx, found); err != nil {
			return err
		}
		if found.GetResourceVersion() != child.GetResourceVersion() && len(about) > 0 {
			return fmt.Errorf("expected %s %s not to be changed when a resource of the same name was deleted in another namespace\nfound:\n%s",
				child.GetKind(), child.GetName(), lines(about))
		}
	}
	return nil
}

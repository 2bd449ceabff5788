package behaviours

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
)

var neighbours = behaviour{
	name:    "neighbours",
	promise: "keeps two resources apart, in one namespace or in two",
	advice: "what distinguishes the children of one resource from those of another: a selector and the pods' labels must contain a value that is unique to the resource, " +
		"such as its name in app.kubernetes.io/instance; look for children only among what its UID controls, and clean up nothing else, not even what has a label of the operator; " +
		"the key of a map must contain the namespace, or be the UID",
	check: func(ctx context.Context, runner *trial.Runner) error {
		first, err := runner.Fresh(ctx, nil)
		if err != nil {
			return err
		}
		spec, err := runner.SecondSpec(ctx)
		if err != nil {
			return err
		}
		if err := namedApart(runner, spec); err != nil {
			return err
		}
		var second state.Snapshot
		err = runner.Reference(ctx, "the second resource alone", func(ctx context.Context, t *trial.Trial) (err error) {
			second, err = t.Establish(ctx, t.Start(operatortest.RunOptions{}), secondResource(t.Runner, spec))
			return err
		})
		if err != nil {
			return err
		}
		return runner.TryAll(ctx, []trial.Case{
			{Name: "one of two resources in a namespace is deleted", Try: func(ctx context.Context, t *trial.Trial) error {
				return tryNeighbours(ctx, t, spec, first, second)
			}},
			{Name: "one of two resources with the same name in two namespaces is deleted", Try: func(ctx context.Context, t *trial.Trial) error {
				return tryNamesakes(ctx, t, first)
			}},
		})
	},
}

// secondResource returns a second resource, which differs from the sample in its name and spec.
func secondResource(runner *trial.Runner, spec map[string]any) *unstructured.Unstructured {
	made := runner.Resource(spec)
	made.SetName(runner.Sample.GetName() + "-2")
	return made
}

// namedApart returns an error if the sample and the second resource would have a child of the same kind and name: no
// operator could keep the two children apart.
func namedApart(runner *trial.Runner, spec map[string]any) error {
	for _, declared := range runner.Operator.Children {
		name := declared.NameFor(runner.Resource(nil))
		if !declared.Generated && name != "" && name == declared.NameFor(secondResource(runner, spec)) {
			return fmt.Errorf("expected a second resource whose children have other names than the sample's\nfound that %s %s is a child of both: "+
				"declare Operator.Values for the field that names it", declared.Kind.Kind, name)
		}
	}
	return nil
}

func tryNeighbours(ctx context.Context, t *trial.Trial, spec map[string]any, first, second state.Snapshot) error {
	operator := t.Start(operatortest.RunOptions{})
	staying, leaving := t.Resource(nil), secondResource(t.Runner, spec)
	// The children of the first resource exist before the second one is created, so the operator may mistake them for the
	// second's.
	for _, resource := range []*unstructured.Unstructured{staying, leaving} {
		if err := t.Create(ctx, resource); err != nil {
			return err
		}
		if err := t.Converge(ctx, resource); err != nil {
			return err
		}
	}
	both := maps.Clone(first)
	maps.Copy(both, second)
	delete(both, state.External) // the kit can't merge the snapshots of two resources: only the suite knows their form
	alike := func(ctx context.Context) error {
		found, err := t.State(ctx)
		if err != nil {
			return err
		}
		delete(found, state.External)
		if difference := found.Difference(both); difference != "" {
			return fmt.Errorf("another state (- is expected, + is found):\n%s", difference)
		}
		return nil
	}
	if err := t.Await(ctx, "each of two resources to reach the same final state as it does alone", alike); err != nil {
		return err
	}
	if err := t.WaitAtRest(ctx, operator); err != nil {
		return err
	}
	kept, err := childrenOf(ctx, t, staying)
	if err != nil {
		return err
	}
	others, err := childrenOf(ctx, t, leaving)
	if err != nil {
		return err
	}
	if err := errors.Join(apart(kept, others), apart(others, kept)); err != nil {
		return err
	}
	if err := t.Delete(ctx, leaving); err != nil {
		return err
	}
	if err := t.ConvergeTo(ctx, staying, first, "only the deleted resource and its children to disappear"); err != nil {
		return err
	}
	if err := t.WaitAtRest(ctx, operator); err != nil {
		return err
	}
	return stillThere(ctx, t, kept)
}

func childrenOf(ctx context.Context, t *trial.Trial, resource *unstructured.Unstructured) (children []*unstructured.Unstructured, err error) {
	for _, declared := range t.Operator.Children {
		child, err := t.Child(ctx, declared, resource)
		if err != nil {
			return nil, err
		}
		if child != nil {
			children = append(children, child)
		}
	}
	return children, nil
}

// stillThere returns an error unless the children are still the same objects.
func stillThere(ctx context.Context, t *trial.Trial, children []*unstructured.Unstructured) error {
	for _, child := range children {
		child, uid := child.DeepCopy(), child.GetUID()
		if err := t.Get(ctx, child); err != nil {
			return err
		}
		if child.GetUID() != uid {
			return fmt.Errorf("expected %s %s to be left alone when another resource was deleted\nfound that it was deleted, too, and created again",
				child.GetKind(), child.GetName())
		}
	}
	return nil
}

// apart returns an error if a selector in one of the children selects the others' pods.
func apart(children, others []*unstructured.Unstructured) error {
	for _, child := range children {
		selector, err := podSelector(child)
		if err != nil {
			return fmt.Errorf("read the selector of %s %s: %w", child.GetKind(), child.GetName(), err)
		}
		for _, other := range others {
			if pods := podLabels(other); pods != nil && selector.Matches(pods) {
				return fmt.Errorf("expected %s %s of one resource not to select pods of another\nfound that its selector %s selects those of %s %s: %s",
					child.GetKind(), child.GetName(), selector, other.GetKind(), other.GetName(), pods)
			}
		}
	}
	return nil
}

// podSelector returns the selector with which an object selects pods. If it has none, podSelector returns one that
// selects nothing.
func podSelector(object *unstructured.Unstructured) (labels.Selector, error) {
	for _, field := range []string{"selector", "podSelector"} { // the latter is a NetworkPolicy's
		content, found, _ := unstructured.NestedMap(object.Object, "spec", field)
		if !found || object.GetKind() == "PersistentVolumeClaim" { // its selector selects volumes
			continue
		}
		if object.GetKind() == "Service" || object.GetKind() == "ReplicationController" {
			pairs, _, err := unstructured.NestedStringMap(object.Object, "spec", field)
			if len(pairs) == 0 {
				return labels.Nothing(), err
			}
			return labels.SelectorFromSet(pairs), err
		}
		var structured metav1.LabelSelector
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &structured); err != nil {
			return nil, err
		}
		return metav1.LabelSelectorAsSelector(&structured)
	}
	return labels.Nothing(), nil
}

// podLabels returns the labels of the pods that come from the object, or nil if none do. For a Pod, it returns the
// Pod's own labels.
func podLabels(object *unstructured.Unstructured) labels.Set {
	if object.GetKind() == "Pod" {
		return object.GetLabels()
	}
	for _, template := range podTemplates {
		if _, found, _ := unstructured.NestedMap(object.Object, template...); found {
			pods, _, _ := unstructured.NestedStringMap(object.Object, slices.Concat(template, []string{"metadata", "labels"})...)
			return labels.Merge(nil, pods)
		}
	}
	return nil
}

// podTemplates are the paths of pod templates; the second one is a CronJob's.
var podTemplates = [][]string{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}}

package behaviours

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/state"
	"example.com/operator-workshop/operatortest/internal/trial"
)

var collision = behaviour{
	name:    "collision",
	promise: "leaves alone an object that has a child's name but belongs to someone else, and reports it",
	advice: "call metav1.IsControlledBy before every write to a child: it compares the UID, and the kind and the name are not enough; " +
		"report someone else's object with a condition that names it and with one Warning event, and don't retry at full speed; " +
		"if the operator doesn't notice that the other object is gone: a watch on what the operator owns does not show it, so watch objects of that kind by their names, too",
	needsChild: true,
	check: func(ctx context.Context, runner *trial.Runner) error {
		cases, err := collisionCases(ctx, runner)
		if err != nil {
			return err
		}
		wanted, err := runner.Fresh(ctx, nil)
		if err != nil {
			return err
		}
		return trial.Each(ctx, len(cases), func(ctx context.Context, i int) error { return collide(ctx, runner, cases[i], wanted) })
	},
}

// collisionCase is someone else's object with the name of a declared child. owned means that the object has a
// controller.
type collisionCase struct {
	template *unstructured.Unstructured
	owned    bool
}

// String describes the object.
func (c collisionCase) String() string {
	owner := "no other object controls"
	if c.owned {
		owner = "another object controls"
	}
	return fmt.Sprintf("%s %s that %s", c.template.GetKind(), c.template.GetName(), owner)
}

func collide(ctx context.Context, runner *trial.Runner, collision collisionCase, wanted state.Snapshot) error {
	return runner.Try(ctx, collision.String(), func(ctx context.Context, t *trial.Trial) error {
		foreign, err := makeForeign(ctx, t, collision.template, collision.owned)
		if err != nil {
			return err
		}
		operator := t.Start(operatortest.RunOptions{})
		resource := runner.Resource(nil)
		if err := t.Create(ctx, resource); err != nil {
			return err
		}
		if err := reported(ctx, t, resource, foreign); err != nil {
			return err
		}
		if err := t.WaitAtRest(ctx, operator); err != nil {
			return err
		}
		// The operator may have repeated the warning after the first check.
		if err := reported(ctx, t, resource, foreign); err != nil {
			return err
		}
		if err := untouched(ctx, t, operator, foreign); err != nil {
			return err
		}
		if err := t.Delete(ctx, foreign); err != nil {
			return err
		}
		return t.ConvergeTo(ctx, resource, wanted, "the operator to converge once the other object is gone")
	})
}

// collisionCases returns the cases for the sample's children whose names are not generated. For a retained child,
// someone else's object always has a controller: an object without one may be left from an earlier resource, so the
// operator may use it.
func collisionCases(ctx context.Context, runner *trial.Runner) (cases []collisionCase, err error) {
	err = runner.Reference(ctx, "the children of the sample", func(ctx context.Context, t *trial.Trial) error {
		resource := runner.Resource(nil)
		if _, err := t.Establish(ctx, t.Start(operatortest.RunOptions{}), resource); err != nil {
			return err
		}
		for _, declared := range runner.Operator.Children {
			child, err := t.Child(ctx, declared, resource)
			if err != nil {
				return err
			}
			if child == nil || declared.Generated {
				continue
			}
			template, err := t.Template(child)
			if err != nil {
				return err
			}
			if !declared.Retained {
				cases = append(cases, collisionCase{template: template})
			}
			cases = append(cases, collisionCase{template: template, owned: true})
		}
		return nil
	})
	return cases, err
}

// reported waits until a condition's message names the foreign object and Operator.Condition is not True. Unless
// collision/event is left out, a Warning event must name the object, too, and no such event may have been repeated.
func reported(ctx context.Context, t *trial.Trial, resource, foreign *unstructured.Unstructured) error {
	// Await doesn't watch Events.
	return t.Eventually(ctx, fmt.Sprintf("the resource to report %s %s with a condition, and with a Warning event that is emitted once", foreign.GetKind(), foreign.GetName()),
		func(ctx context.Context) error {
			if err := t.Get(ctx, resource); err != nil {
				return err
			}
			conditions, err := trial.ConditionsOf(resource)
			if err != nil {
				return err
			}
			names := func(condition metav1.Condition) bool { return strings.Contains(condition.Message, foreign.GetName()) }
			if !slices.ContainsFunc(slices.Collect(maps.Values(conditions)), names) {
				return fmt.Errorf("no condition has a message that names it; the conditions are %v", conditions)
			}
			if condition := conditions[t.Operator.Condition]; condition.Status == metav1.ConditionTrue {
				return fmt.Errorf("condition %s is True nevertheless", condition.Type)
			}
			if t.LeftOut("collision/event") {
				return nil
			}
			return warned(ctx, t, resource, foreign)
		})
}

// warned returns an error unless a Warning event names the foreign object, and also if the same warning was emitted
// twice. Different warnings about the object are allowed.
func warned(ctx context.Context, t *trial.Trial, resource, foreign *unstructured.Unstructured) error {
	events := &eventsv1.EventList{}
	if err := t.Cluster.Admin.List(ctx, events, client.InNamespace(t.EventsNamespace())); err != nil {
		return fmt.Errorf("list the events: %w", err)
	}
	times := map[string]int{}
	for _, event := range events.Items {
		if event.Regarding.UID != resource.GetUID() || event.Type != corev1.EventTypeWarning || !strings.Contains(event.Note, foreign.GetName()) {
			continue
		}
		given := max(1, int(event.DeprecatedCount)) // the recorder of core/v1 counts here
		if event.Series != nil {
			given = int(event.Series.Count)
		}
		times[event.Reason+": "+event.Note] += given
	}
	if len(times) == 0 {
		return errors.New("no Warning event about the resource names it")
	}
	for _, warning := range slices.Sorted(maps.Keys(times)) {
		if times[warning] > 1 {
			return fmt.Errorf("the same warning was emitted again and again, %d times so far: %s", times[warning], warning)
		}
	}
	return nil
}

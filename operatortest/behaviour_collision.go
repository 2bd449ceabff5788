package operatortest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var collision = behaviour{
	name:    "collision",
	promise: "leaves an object alone that has the name of a child but belongs to somebody else, and reports it",
	advice: "metav1.IsControlledBy before every write to a child: it compares the UID, where a kind or a name is not enough; " +
		"for what is not ours, a condition that names the object and one Warning event, and no retry at full speed; " +
		"if it is not noticed that the other object goes: a watch on what the operator owns does not show it, so watch objects of that kind by their names, too",
	needsChild: true,
	check: func(ctx context.Context, lab *lab) error {
		templates, err := lab.templates(ctx)
		if err != nil {
			return err
		}
		var cases []collisionCase
		for _, template := range templates {
			cases = append(cases, collisionCase{template: template}, collisionCase{template: template, owned: true})
		}
		wanted, err := lab.fresh(ctx, nil)
		if err != nil {
			return err
		}
		return each(ctx, len(cases), func(ctx context.Context, i int) error { return lab.collide(ctx, cases[i], wanted) })
	},
}

// collisionCase is a foreign object in the place of a declared child, with a
// controller of its own or without any.
type collisionCase struct {
	template *unstructured.Unstructured
	owned    bool
}

func (l *lab) collide(ctx context.Context, collision collisionCase, wanted state) error {
	return l.try(ctx, func(ctx context.Context, trial *trial) error {
		foreign, err := trial.makeForeign(ctx, collision.template, collision.owned)
		if err != nil {
			return err
		}
		operator := trial.start(RunOptions{})
		resource := l.resource(nil)
		if err := trial.create(ctx, resource); err != nil {
			return err
		}
		if err := trial.reported(ctx, resource, foreign); err != nil {
			return err
		}
		if err := trial.rest(ctx, operator); err != nil {
			return err
		}
		// A warning of each reconcile may come only after the first was seen.
		if err := trial.reported(ctx, resource, foreign); err != nil {
			return err
		}
		if err := trial.untouched(ctx, operator, foreign); err != nil {
			return err
		}
		if err := trial.remove(ctx, foreign); err != nil {
			return err
		}
		return trial.convergeTo(ctx, resource, wanted, "the operator to go on once the other object is gone")
	})
}

// templates are the sample's children as the operator makes them, to be put in its way elsewhere.
func (l *lab) templates(ctx context.Context) (templates []*unstructured.Unstructured, err error) {
	err = l.try(ctx, func(ctx context.Context, trial *trial) error {
		resource := l.resource(nil)
		if _, err := trial.settle(ctx, trial.start(RunOptions{}), resource); err != nil {
			return err
		}
		for _, declared := range l.operator.Children {
			child, err := trial.child(ctx, declared, resource)
			if err != nil {
				return err
			}
			if child != nil {
				templates = append(templates, child)
			}
		}
		return nil
	})
	return templates, err
}

// makeForeign creates an object like the child that is not the operator's.
func (t *trial) makeForeign(ctx context.Context, template *unstructured.Unstructured, owned bool) (*unstructured.Unstructured, error) {
	foreign := template.DeepCopy()
	delete(foreign.Object, "status")
	foreign.Object["metadata"] = map[string]any{
		"name": template.GetName(), "annotations": map[string]any{"somebody-else.example.com/annotation": "mine"},
	}
	if template.GetKind() == "Service" {
		normalizeService(foreign)
	}
	if owned {
		owner := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		owner.SetName("somebody-else")
		if err := t.create(ctx, owner); err != nil {
			return nil, err
		}
		t.theirs[owner.GetUID()] = true
		foreign.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	}
	if err := t.create(ctx, foreign); err != nil {
		return nil, err
	}
	t.theirs[foreign.GetUID()] = true
	return foreign, nil
}

// untouched returns an error if the operator wrote to the object, or tried to.
func (t *trial) untouched(ctx context.Context, operator *instance, foreign *unstructured.Unstructured) error {
	if err := t.unchanged(ctx, foreign); err != nil {
		return err
	}
	kind := foreign.GroupVersionKind()
	mapping, err := t.cluster.admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("find the resource of kind %s: %w", kind.Kind, err)
	}
	for _, request := range operator.writes() {
		// A create can't change what is there.
		if request.Resource == mapping.Resource.Resource && request.Name == foreign.GetName() && request.Verb != "create" {
			return fmt.Errorf("expected no write to %s %s, which is not the operator's own\nfound: %s", kind.Kind, foreign.GetName(), request)
		}
	}
	return nil
}

// unchanged returns an error if somebody else's object is no longer what it was.
func (t *trial) unchanged(ctx context.Context, foreign *unstructured.Unstructured) error {
	now := foreign.DeepCopy()
	if err := t.reread(ctx, now); err != nil {
		return fmt.Errorf("expected the operator to leave %s %s alone\nfound: %w", foreign.GetKind(), foreign.GetName(), err)
	}
	mine := func(object *unstructured.Unstructured) map[string]any {
		annotations := object.GetAnnotations()
		delete(annotations, revisionAnnotation)
		return map[string]any{
			"uid": object.GetUID(), "labels": object.GetLabels(), "annotations": annotations, "ownerReferences": object.GetOwnerReferences(),
			"finalizers": object.GetFinalizers(), "content": content(object),
		}
	}
	if difference := cmp.Diff(mine(foreign), mine(now)); difference != "" {
		return fmt.Errorf("expected the operator to leave %s %s alone, which is not its own\nfound changes (+):\n%s",
			foreign.GetKind(), foreign.GetName(), difference)
	}
	return nil
}

// content is what an object's owner decides on: all but the metadata and the status.
func content(object *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(object.Object)
	delete(fields, "metadata")
	delete(fields, "status")
	return fields
}

// reported waits until a condition and exactly one Warning event tell of the foreign object.
func (t *trial) reported(ctx context.Context, resource, foreign *unstructured.Unstructured) error {
	return t.eventually(ctx, fmt.Sprintf("the resource to tell of %s %s by a condition and one Warning event", foreign.GetKind(), foreign.GetName()),
		func(ctx context.Context) error {
			if err := t.reread(ctx, resource); err != nil {
				return err
			}
			conditions, err := conditionsOf(resource)
			if err != nil {
				return err
			}
			names := func(condition metav1.Condition) bool { return strings.Contains(condition.Message, foreign.GetName()) }
			if !slices.ContainsFunc(slices.Collect(maps.Values(conditions)), names) {
				return fmt.Errorf("no condition has a message that names it; the conditions are %v", conditions)
			}
			if condition := conditions[t.operator.condition()]; condition.Status == metav1.ConditionTrue {
				return fmt.Errorf("condition %s is True all the same", condition.Type)
			}
			return t.warnedOnce(ctx, resource, foreign)
		})
}

func (t *trial) warnedOnce(ctx context.Context, resource, foreign *unstructured.Unstructured) error {
	events := &eventsv1.EventList{}
	if err := t.cluster.admin.List(ctx, events, client.InNamespace(t.namespace)); err != nil {
		return fmt.Errorf("list the events: %w", err)
	}
	var notes []string
	for _, event := range events.Items {
		if event.Regarding.UID != resource.GetUID() || event.Type != corev1.EventTypeWarning || !strings.Contains(event.Note, foreign.GetName()) {
			continue
		}
		times := max(1, int(event.DeprecatedCount)) // where the recorder of core/v1 counts
		if event.Series != nil {
			times = int(event.Series.Count)
		}
		notes = append(notes, fmt.Sprintf("%s (%d times): %s", event.Reason, times, event.Note))
		if times > 1 {
			return fmt.Errorf("the same warning was given again and again: %s", notes)
		}
	}
	if len(notes) != 1 {
		return fmt.Errorf("%d Warning events about the resource name it: %q", len(notes), notes)
	}
	return nil
}

package behaviours

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// A misoperation is a spec that the schema accepts but the cluster can't meet. The term is from the paper on Acto
// (SOSP 2023). The kit also tries problems that don't depend on the spec: a quota that refuses the children and, if the
// children make pods, a quota that refuses the pods. Unless it uses an existing cluster, it then also tries nodes on
// which the pods can't be scheduled, and images that can't be pulled. The cases that come from the spec and its schema
// are in misoperation_cases.go.
//
// Not every problem affects every operator. If the resource converges as usual, the trial counts as not tried; but
// a trial of the quota for children fails if nothing was refused. It is not tried if all children are cluster-scoped.
var misoperation = behaviour{
	name:    "misoperation",
	promise: "reports that it can't fulfil a spec, and fulfils it once it can",
	advice: "the error of each create and patch: if the API server refuses one (403 Forbidden, 422 Invalid), set a condition to False with the API server's message, " +
		"or set a phase, or emit a Warning event; then return the error, so that the request is retried with backoff: no watch reports that a quota has changed. " +
		"Compute the status from what exists: a Deployment may exist without pods",
	needsChild: true,
	check: func(ctx context.Context, runner *trial.Runner) error {
		if runner.FirstChild() == nil {
			return errors.New("the sample has none of Operator.Children: use a sample that has some")
		}
		cases, err := misoperations(ctx, runner)
		if err != nil {
			return err
		}
		return runner.TryAll(ctx, cases)
	},
}

// watchedLooks is roughly the number of times that the kit checks for retries while a spec can't be met. A check is a
// request to the API server and a pause, so an operator that retries without a pause is refused more often than the kit
// checks, however slow the machine is. An operator with backoff is refused only a few times.
const watchedLooks = 60

// childrenRefused creates the sample while a quota refuses each of its namespaced children, and then removes the quota.
func childrenRefused(ctx context.Context, t *trial.Trial) error {
	if len(t.NamespacedChildNames(nil)) == 0 {
		t.NotTried = "nothing to refuse: no quota applies to cluster-scoped children"
		return nil
	}
	wanted, err := t.Fresh(ctx, nil)
	if err != nil {
		return err
	}
	lift, err := t.Forbid(ctx, t.ChildKinds()...)
	if err != nil {
		return err
	}
	operator, resource := t.Start(operatortest.RunOptions{}), t.Resource(nil)
	if err := t.Create(ctx, resource); err != nil {
		return err
	}
	if err := expectRefused(ctx, t, operator, resource); err != nil {
		return err
	}
	if err := lift(ctx); err != nil {
		return err
	}
	return t.ConvergeTo(ctx, resource, wanted, "the operator to converge by its own retries once the quota is gone")
}

// renamedRefused returns an experiment that changes the spec so that children get new names, while a quota refuses new
// objects of the children's kinds, and then removes the quota. In the end, the children with the old names must be
// gone, except retained ones.
func renamedRefused(change map[string]any) func(context.Context, *trial.Trial) error {
	return func(ctx context.Context, t *trial.Trial) error {
		wanted, err := t.Fresh(ctx, change)
		if err != nil {
			return err
		}
		operator, resource := t.Start(operatortest.RunOptions{}), t.Resource(nil)
		if _, err := t.Establish(ctx, operator, resource); err != nil {
			return err
		}
		lift, err := t.Forbid(ctx, t.ChildKinds()...)
		if err != nil {
			return err
		}
		if err := t.SetSpec(ctx, resource, change); err != nil {
			return err
		}
		if err := expectRefused(ctx, t, operator, resource); err != nil {
			return err
		}
		if err := lift(ctx); err != nil {
			return err
		}
		return t.ConvergeTo(ctx, resource, wanted, "the operator to converge by its own retries once the quota is gone, and to leave nothing of the former spec")
	}
}

// expectRefused expects a quota to refuse a child, and the operator to report that the spec is not met, and to retry
// only with backoff.
func expectRefused(ctx context.Context, t *trial.Trial, operator *trial.Instance, resource *unstructured.Unstructured) error {
	asked := func(context.Context) error {
		refused, err := refusedChildren(t, operator)
		if err == nil && len(refused) == 0 {
			err = errors.New("no attempt has been refused yet")
		}
		return err
	}
	if err := t.Eventually(ctx, "the operator to try to create a child, which a quota refuses", asked); err != nil {
		return err
	}
	if _, err := unmet(ctx, t, operator, resource); err != nil {
		return fmt.Errorf("a quota refuses the resource's children (403 Forbidden): %w", err)
	}
	return nil
}

// unmet expects the operator to report that a resource's spec is not met, and to retry only with backoff. It returns
// whether the spec is met after all, with all children: then there is nothing to report.
func unmet(ctx context.Context, t *trial.Trial, operator *trial.Instance, resource *unstructured.Unstructured) (met bool, err error) {
	before, _, _ := unstructured.NestedFieldCopy(resource.Object, "status")
	what := "the operator to report that the spec is not met, with a condition, a phase or a Warning event"
	err = t.Eventually(ctx, what, func(ctx context.Context) error {
		if err := t.Get(ctx, resource); err != nil {
			return err
		}
		if met = t.Met(resource) == nil; !met {
			return reports(ctx, t, resource, before)
		}
		if err := t.Complete(ctx, resource); err != nil {
			return fmt.Errorf("the status says that the spec is met, but %w", err)
		}
		return nil
	})
	if err != nil || met {
		return met, err
	}
	earlier, err := refusedChildren(t, operator)
	if err != nil {
		return false, err
	}
	looks := 0
	over := func() bool {
		looks++
		return met || looks > watchedLooks
	}
	err = t.Until(ctx, over, "the operator to try again with backoff", func(ctx context.Context) error {
		if err := t.Get(ctx, resource); err != nil {
			return err
		}
		met = t.Met(resource) == nil
		now, err := refusedChildren(t, operator)
		for write, times := range now {
			if more := times - earlier[write]; more > watchedLooks/2 {
				return fmt.Errorf("%s was refused another %d times, while the kit checked %d times", write, more, looks)
			}
		}
		return err
	})
	if err != nil || !met {
		return false, err
	}
	complete := func(ctx context.Context) error { return t.Complete(ctx, resource) }
	return true, t.Eventually(ctx, "the status to say that the spec is met only if it is", complete)
}

// reports returns an error if the operator reports nowhere that a resource's spec is not met, unless
// misoperation/report is left out. If Operator.Converged interprets the status, a status that still equals before
// doesn't count. before is the status that the kit had last read when it began to wait for the report.
func reports(ctx context.Context, t *trial.Trial, resource *unstructured.Unstructured, before any) error {
	now, _, _ := unstructured.NestedFieldNoCopy(resource.Object, "status")
	byStatus := t.Unmet(ctx, resource)
	if byStatus == nil && t.Operator.Converged != nil && equality.Semantic.DeepEqual(before, now) {
		byStatus = errors.New("the status has not changed")
	}
	if byStatus == nil || t.LeftOut("misoperation/report") {
		return nil
	}
	warned, err := hasWarning(ctx, t, t.EventsNamespace(), func(event eventsv1.Event) bool { return event.Regarding.UID == resource.GetUID() })
	if err == nil && !warned {
		err = fmt.Errorf("there is no Warning event, and %w", byStatus)
	}
	return err
}

// hasWarning reports whether there is a matching Warning event in a namespace.
func hasWarning(ctx context.Context, t *trial.Trial, namespace string, match func(eventsv1.Event) bool) (bool, error) {
	events := &eventsv1.EventList{}
	if err := t.Cluster.Admin.List(ctx, events, client.InNamespace(namespace)); err != nil {
		return false, fmt.Errorf("list the events: %w", err)
	}
	return slices.ContainsFunc(events.Items, func(event eventsv1.Event) bool {
		return event.Type == corev1.EventTypeWarning && match(event)
	}), nil
}

// refusedChildren counts the create, update and patch requests for objects of the children's kinds that the API server
// refused as forbidden; the keys describe the requests. Dry runs count, too.
func refusedChildren(t *trial.Trial, operator *trial.Instance) (map[string]int, error) {
	ofChildren, err := t.RequestsFor(t.ChildKinds()...)
	if err != nil {
		return nil, err
	}
	refused := map[string]int{}
	for _, request := range operator.Tap.Requests() {
		if ofChildren(request) && request.Status == http.StatusForbidden && slices.Contains([]string{"create", "update", "patch"}, request.Verb) {
			refused[request.Kind()+" "+request.Name]++
		}
	}
	return refused, nil
}

// misoperations returns the trials that apply to an operator.
func misoperations(ctx context.Context, runner *trial.Runner) ([]trial.Case, error) {
	cases := []trial.Case{{Name: "a quota refuses the children of a new resource", Try: childrenRefused}}
	change, err := runner.OtherSpec(ctx)
	if err != nil {
		return nil, err
	}
	before := runner.NamespacedChildNames(nil)
	if slices.ContainsFunc(runner.NamespacedChildNames(change), func(name string) bool { return !slices.Contains(before, name) }) {
		cases = append(cases, trial.Case{Name: "a quota refuses the children of a changed spec", Try: renamedRefused(change)})
	}
	made, err := runner.Fresh(ctx, nil)
	if err != nil {
		return nil, err
	}
	hasPods := func(content any) bool {
		fields, ok := content.(map[string]any)
		return ok && fields["kind"] != "Pod" && podLabels(&unstructured.Unstructured{Object: fields}) != nil // a Pod is a child itself
	}
	if slices.ContainsFunc(slices.Collect(maps.Values(made)), hasPods) && !runner.LeftOut("misoperation/pods") {
		cases = append(cases, trial.Case{Name: "a quota refuses the pods", Try: podsRefused})
		if !runner.Cluster.Existing { // on an existing cluster, the kit must not label the nodes, and the pods aren't simulated
			cases = append(cases,
				trial.Case{Name: "no node fits the pods", Try: podsHeld((*trial.Trial).Unschedule, "no node fits the pods, which stay pending", "the nodes fit")},
				trial.Case{Name: "the images can't be pulled", Try: podsHeld((*trial.Trial).FailPulls, "the images can't be pulled", "the images can be pulled")})
			impossible, err := impossibleSpecs(ctx, runner)
			if err != nil {
				return nil, err
			}
			cases = append(cases, impossible...)
		}
	}
	dangling, err := danglingReferences(ctx, runner)
	return append(cases, dangling...), err
}

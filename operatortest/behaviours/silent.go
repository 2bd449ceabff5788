package behaviours

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

const (
	// resync is how often informers pass all objects to the handlers again while an operator should be silent;
	// client-go accepts no shorter period.
	resync = time.Second
	// watchedFor is how long the kit usually checks that an operator doesn't do something forbidden.
	watchedFor = 800 * time.Millisecond
)

var silent = behaviour{
	name:    "silent",
	promise: "writes nothing while there is nothing to do",
	advice: "every write: compare what is with what should be first, and write only the difference; " +
		"server-side apply needn't compare, because the API server does; " +
		"start only when all caches are filled, because until then existing objects seem to be missing; emit an event for a transition, not for each reconcile; a timestamp in the status must not change on its own",
	check: func(ctx context.Context, runner *trial.Runner) error {
		var cases []trial.Case
		if !runner.LeftOut(trial.Resync) {
			cases = append(cases, trial.Case{Name: "informers repeat all objects", Try: silentOnResyncs})
		}
		return runner.TryAll(ctx, append(cases, trial.Case{Name: "others write, and the operator is restarted", Try: silentOnNews}))
	},
}

// silentOnResyncs expects no write while informers pass all objects to the handlers again.
func silentOnResyncs(ctx context.Context, t *trial.Trial) error {
	operator := t.Start(operatortest.RunOptions{Resync: resync})
	if _, err := t.Establish(ctx, operator, t.Resource(nil)); err != nil {
		return err
	}
	return expectSilence(ctx, t, operator, len(operator.Writes()), 2*resync+watchedFor/2, "informers repeat all objects every "+resync.String())
}

// silentOnNews expects no write after changes that don't concern the operator, and none after a restart, when the
// operator sees all objects for the first time.
func silentOnNews(ctx context.Context, t *trial.Trial) error {
	first := t.Start(operatortest.RunOptions{})
	resource := t.Resource(nil)
	if _, err := t.Establish(ctx, first, resource); err != nil {
		return err
	}
	before := len(first.Writes())
	if err := touchAll(ctx, t, resource); err != nil {
		return err
	}
	// An operator that polls notices the changes at its next poll.
	duration := max(watchedFor, min(t.Operator.MaxPause, t.Operator.Timeout))
	if err := expectSilence(ctx, t, first, before, duration, "someone else applies the spec that the resource has already, and labels its children"); err != nil {
		return err
	}
	if err := t.WaitAtRest(ctx, first); err != nil { // also from applies that change nothing
		return err
	}
	if err := first.Stop(); err != nil {
		return err
	}
	second := t.Start(operatortest.RunOptions{})
	if err := t.WaitSynced(ctx, second); err != nil {
		return err
	}
	return expectSilence(ctx, t, second, 0, trial.Quiet, "the restarted operator sees everything for the first time")
}

// expectSilence watches an operator for a while, during which it must not write. before is the number of the operator's
// earlier writes, which don't count. A server-side apply that changes nothing doesn't count either: the API server
// compares in place of the operator, and stores nothing.
func expectSilence(ctx context.Context, t *trial.Trial, operator *trial.Instance, before int, duration time.Duration, circumstances string) error {
	end := time.Now().Add(duration)
	over := func() bool {
		return time.Now().After(end) && !slices.ContainsFunc(operator.Writes()[before:], isPendingApply)
	}
	return t.Until(ctx, over, "no write request while "+circumstances, func(context.Context) error {
		writes := slices.DeleteFunc(operator.Writes()[before:], func(request traffic.Request) bool { return request.Unchanged || isPendingApply(request) })
		if len(writes) > 0 {
			return fmt.Errorf("%d:\n%s", len(writes), lines(writes))
		}
		return nil
	})
}

// isPendingApply reports whether a request is a server-side apply without a reply. Only the reply shows whether it has
// changed anything.
func isPendingApply(request traffic.Request) bool { return request.Applies && !request.Done }

// touchAll changes the resource and its children in ways that concern no operator.
func touchAll(ctx context.Context, t *trial.Trial, resource *unstructured.Unstructured) error {
	if err := t.Touch(ctx, resource); err != nil {
		return err
	}
	return t.Children(ctx, resource, func(_ operatortest.Child, child *unstructured.Unstructured) error {
		return t.Patch(ctx, child, trial.ForeignPatch)
	})
}

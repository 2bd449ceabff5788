package operatortest

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// resync is how often informers are asked to repeat everything while an
	// operator should be silent; client-go takes no shorter period.
	resync = time.Second
	// watched is how long an operator is watched for what it must not do.
	watched = 800 * time.Millisecond
)

var silent = behaviour{
	name:    "silent",
	promise: "writes nothing while there is nothing to do",
	advice: "every write: compare what is with what should be first, and write only the difference; " +
		"an event belongs to a transition, not to a reconcile; a time stamp in the status must not change on its own",
	check: func(ctx context.Context, lab *lab) error {
		cases := []func(*trial, context.Context) error{(*trial).silentOnResyncs, (*trial).silentOnNews}
		return each(ctx, len(cases), func(ctx context.Context, i int) error {
			return lab.try(ctx, func(ctx context.Context, trial *trial) error { return cases[i](trial, ctx) })
		})
	},
}

// silentOnResyncs expects nothing of an operator that sees again what it has seen.
func (t *trial) silentOnResyncs(ctx context.Context) error {
	operator := t.start(RunOptions{Resync: resync})
	if _, err := t.settle(ctx, operator, t.resource(nil)); err != nil {
		return err
	}
	return t.hush(ctx, operator, len(operator.writes()), 2*resync+watched/2, "informers repeat all objects every "+resync.String())
}

// silentOnNews expects nothing of one that sees what does not concern it, or what was done before its time.
func (t *trial) silentOnNews(ctx context.Context) error {
	first := t.start(RunOptions{})
	resource := t.resource(nil)
	if _, err := t.settle(ctx, first, resource); err != nil {
		return err
	}
	before := len(first.writes())
	if err := t.touchAll(ctx, resource); err != nil {
		return err
	}
	if err := t.hush(ctx, first, before, watched, "somebody put a label on the resource and its children"); err != nil {
		return err
	}
	if err := first.stop(); err != nil {
		return err
	}
	second := t.start(RunOptions{})
	if err := t.awake(ctx, second); err != nil {
		return err
	}
	return t.hush(ctx, second, 0, quiet, "the operator was started anew and sees everything for the first time")
}

// hush watches an operator for a while in which it must not write. Its writes are counted from those before on.
func (t *trial) hush(ctx context.Context, operator *instance, before int, duration time.Duration, circumstances string) error {
	return t.throughout(ctx, duration, "no write request while "+circumstances, func(context.Context) error {
		if writes := operator.writes()[before:]; len(writes) > 0 {
			return fmt.Errorf("%d:\n%s", len(writes), lines(writes))
		}
		return nil
	})
}

// touchAll changes the resource and its children where it concerns no operator.
func (t *trial) touchAll(ctx context.Context, resource *unstructured.Unstructured) error {
	if err := t.patch(ctx, resource, foreignPatch); err != nil {
		return err
	}
	return t.children(ctx, resource, func(_ Child, child *unstructured.Unstructured) error {
		return t.patch(ctx, child, foreignPatch)
	})
}

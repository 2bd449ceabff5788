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
		return lab.try(ctx, func(ctx context.Context, trial *trial) error {
			first := trial.start(RunOptions{Resync: resync})
			resource := lab.resource(nil)
			if _, err := trial.settle(ctx, first, resource); err != nil {
				return err
			}
			if err := trial.hush(ctx, first, 2*resync+watched/2, "informers repeat all objects every "+resync.String()); err != nil {
				return err
			}
			if err := trial.touchAll(ctx, resource); err != nil {
				return err
			}
			if err := trial.hush(ctx, first, watched, "somebody put a label on the resource and its children"); err != nil {
				return err
			}
			if err := first.stop(); err != nil {
				return err
			}
			second := trial.start(RunOptions{})
			return trial.hush(ctx, second, watched, "the operator was started anew and sees everything for the first time")
		})
	},
}

// hush watches an operator for a while in which it must not write.
func (t *trial) hush(ctx context.Context, operator *instance, duration time.Duration, circumstances string) error {
	before := len(operator.writes())
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

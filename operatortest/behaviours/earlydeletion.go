package behaviours

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

var earlyDeletion = behaviour{
	name:    "early-deletion",
	promise: "leaves nothing behind when a resource is deleted while it is being created",
	advice: "writes that are decided before the deletion and arrive after it: add the finalizer before you create anything outside Kubernetes, and send it " +
		"with the resourceVersion or UID that was read, because server-side apply recreates a resource that is gone; set each child's owner reference in its first write; " +
		"if the resource disappears in the middle of a reconcile, stop there",
	check: func(ctx context.Context, runner *trial.Runner) error {
		writes, err := creationWrites(ctx, runner)
		if err != nil {
			return err
		}
		// The number of status writes can differ from run to run.
		steady := slices.DeleteFunc(slices.Clone(writes), func(w write) bool { return w.nth > 1 && strings.Contains(w.what, "/status ") })
		targets := slices.Compact([]write{steady[0], steady[len(steady)/2], steady[len(steady)-1]})
		var struck atomic.Bool
		err = trial.Each(ctx, len(targets), func(ctx context.Context, i int) error {
			reached, err := deleteDuring(ctx, runner, targets[i], writes)
			if reached {
				struck.Store(true)
			}
			return err
		})
		if err == nil && !struck.Load() && runner.OnlyTrial == "" {
			return fmt.Errorf("expected the operator to make the same writes for each new resource, so that the resource can be deleted during one of them\nfound that it repeated none of these: %v", targets)
		}
		return err
	},
}

// creationWrites returns an operator's writes from the creation of a resource until the operator is at rest, or an
// error if there are none.
func creationWrites(ctx context.Context, runner *trial.Runner) ([]write, error) {
	recorder := &crashPoint{}
	err := runner.Reference(ctx, "the writes of a creation", func(ctx context.Context, t *trial.Trial) error {
		recorder.namespace = t.Namespace
		tap := traffic.New()
		tap.SetRule(recorder.decide)
		_, err := t.Establish(ctx, t.StartOn(tap, operatortest.RunOptions{}), t.Resource(nil))
		return err
	})
	if err == nil && len(recorder.seen) == 0 {
		err = errors.New("expected the operator to write while a resource is created\nfound no write during which to delete the resource")
	}
	return recorder.seen, err
}

// deleteDuring deletes a new resource while one of the operator's writes is in flight: the operator has sent it, and
// the API server has not received it yet. deleteDuring reports whether the operator made that write.
func deleteDuring(ctx context.Context, runner *trial.Runner, target write, recorded []write) (reached bool, err error) {
	name := fmt.Sprintf("deleted during %s", target)
	err = runner.Try(ctx, name, func(ctx context.Context, t *trial.Trial) error {
		point := &crashPoint{target: target, recorded: recorded, namespace: t.Namespace}
		hold := holdFirstWrite()
		tap := traffic.New()
		tap.SetRule(func(request traffic.Request) traffic.Action {
			if !request.IsWrite() || request.IsEvent() || request.IsLease() || !point.hits(point.wordsFor(request)) {
				return traffic.Action{}
			}
			return hold.rule(request)
		})
		operator, resource := t.StartOn(tap, operatortest.RunOptions{}), t.Resource(nil)
		if err := t.Create(ctx, resource); err != nil {
			return err
		}
		release := sync.OnceFunc(func() { close(hold.release) })
		defer release()
		err := t.Eventually(ctx, "the operator to begin to "+target.String(), func(ctx context.Context) error {
			if reached = hold.reached() == nil; reached {
				return nil
			}
			return errors.Join(t.Get(ctx, resource), t.Met(resource), t.Complete(ctx, resource)) // it may converge without that write
		})
		if err != nil {
			return err
		}
		if !reached {
			t.NotTried = "the operator never made this write: " + target.String()
			return nil
		}
		if err := t.Delete(ctx, resource); err != nil {
			return err
		}
		release()
		// The operator first finishes the work that was in progress.
		if err := t.WaitAtRest(ctx, operator); err != nil {
			return err
		}
		circumstances := "it was deleted during the operator's " + target.String()
		if err := t.WaitGone(ctx, resource, circumstances); err != nil {
			return err
		}
		if err := t.WaitAtRest(ctx, operator); err != nil {
			return err
		}
		return t.WaitGone(ctx, resource, circumstances)
	})
	return reached, err
}

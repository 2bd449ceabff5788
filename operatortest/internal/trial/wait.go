package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/operator-workshop/operatortest/testcluster"
	"example.com/operator-workshop/operatortest/traffic"
)

// Quiet is how long an operator must go without a request, or in some waits without a write, before it counts as done.
const Quiet = 400 * time.Millisecond

// Stillness finds out, over repeated checks, whether an operator is done. It counts checks, not time: on a busy machine
// the operator is slow, and so are the checks.
type Stillness struct {
	// Quiet is how long the operator must go without a request. If it is zero, the constant Quiet applies.
	Quiet           time.Duration
	requests, looks int
}

// Still reports whether no request is in flight, and none was made during as many checks as usually fit into Quiet.
func (s *Stillness) Still(requests []traffic.Request) bool {
	inFlight := slices.ContainsFunc(requests, func(request traffic.Request) bool { return !request.Done })
	if inFlight || len(requests) != s.requests {
		s.requests, s.looks = len(requests), 0
		return false
	}
	s.looks++
	return s.looks >= int(cmp.Or(s.Quiet, Quiet)/testcluster.PollInterval)
}

// WaitAtRest waits until the operator has written nothing for a while. It doesn't wait for an operator that hasn't
// written anything yet.
func (t *Trial) WaitAtRest(ctx context.Context, operator *Instance) error {
	var stillness Stillness
	return t.Eventually(ctx, fmt.Sprintf("the operator to come to rest: no write request for %s", Quiet), func(context.Context) error {
		writes := operator.Writes()
		if len(writes) == 0 || stillness.Still(writes) {
			return nil
		}
		return fmt.Errorf("it keeps writing, %d requests so far; the last one: %s", len(writes), writes[len(writes)-1])
	})
}

// WaitSynced waits until an operator has read its resources, by a watch or a list, and has finished with what it
// found: it has neither written nor started a watch for a while.
func (t *Trial) WaitSynced(ctx context.Context, operator *Instance) error {
	ours, err := t.RequestsFor(t.Sample.GroupVersionKind())
	if err != nil {
		return err
	}
	reads := func(request traffic.Request) bool {
		return ours(request) && (request.Verb == "watch" || request.Verb == "list") && request.Status == http.StatusOK
	}
	// An operator that uses no watches sends list and get requests repeatedly.
	ignored := func(request traffic.Request) bool {
		return request.IsLease() || request.Verb == "get" || request.Verb == "list"
	}
	var stillness Stillness
	return t.Eventually(ctx, fmt.Sprintf("the operator to read every %s, and then to be at rest for %s", t.Sample.GetKind(), Quiet), func(context.Context) error {
		requests := operator.Tap.Requests()
		hasRead := slices.ContainsFunc(requests, reads)
		requests = slices.DeleteFunc(requests, ignored)
		isStill := stillness.Still(requests)
		if !hasRead {
			return errors.New("it has neither watched nor listed them")
		}
		if !isStill && len(requests) > 0 {
			return fmt.Errorf("its last request: %s", requests[len(requests)-1])
		}
		return nil
	})
}

// unusable means that waiting is useless: the operator's description must be corrected first.
type unusable struct{ error }

// Unwrap returns the error that was marked.
func (u unusable) Unwrap() error { return u.error }

// Unusable marks an error from a function in the operator's description: waiting will not make it go away.
func Unusable(err error) error { return unusable{err} }

// IsUnusable reports whether an error is marked by [Unusable].
func IsUnusable(err error) bool { return errors.As(err, &unusable{}) }

// Eventually waits until the condition holds. If it doesn't hold in time, Eventually returns the condition's last
// error. It stops before Operator.Timeout if the operator pauses for longer than Operator.MaxPause allows while
// Kubernetes' own controllers have nothing left to do. A panic, an error from BeforeLook or an error marked by Unusable
// also ends the wait. For conditions that don't depend on the operator alone, use Within.
func (t *Trial) Eventually(ctx context.Context, what string, condition func(context.Context) error) error {
	return t.wait(ctx, t.Operator.Timeout, what, condition, t.newPause(ctx))
}

// Within is like Eventually, but the caller sets the time limit, and a pause of the operator doesn't end the wait.
func (t *Trial) Within(ctx context.Context, limit time.Duration, what string, condition func(context.Context) error) error {
	return t.wait(ctx, limit, what, condition, nil)
}

func (t *Trial) wait(ctx context.Context, limit time.Duration, what string, condition func(context.Context) error, idle *pause) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last, ended error
	err := wait.PollUntilContextCancel(bounded, testcluster.PollInterval, true, func(ctx context.Context) (bool, error) {
		if ended = t.lookAfter(); ended != nil {
			return false, ended
		}
		idle.look()
		err := condition(ctx)
		if err == nil || ctx.Err() == nil {
			last = err
		}
		if IsUnusable(err) {
			ended = err
		}
		if err != nil && ended == nil && idle.isOver(ctx) {
			ended = errPaused
		}
		return err == nil, ended
	})
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		last = cmp.Or(last, errors.New("no check had ended"))
		return fmt.Errorf("expected %s\nfound, when the trial was cancelled or its time was up: %w: %w", what, last, ctx.Err())
	}
	if errors.Is(ended, errPaused) {
		return idle.explain(what, last)
	}
	if ended != nil {
		return fmt.Errorf("expected %s\nfound: %w", what, ended)
	}
	if last == nil {
		last = err
	}
	return fmt.Errorf("expected %s\nfound, after %s at most: %w", what, limit, last)
}

// Await is like Eventually, but for a condition that only reads, and reads only the trial's resources and children and
// what exists in Operator.External. It checks the condition against the Runner's store at first, and then whenever a
// resource or child has changed or, if there is an Operator.External, on every poll. The store may be out of date, so
// success counts only if the API server confirms it. If Operator.MaxPause is set, Await also asks the API server every
// second while the operator does nothing.
func (t *Trial) Await(ctx context.Context, what string, condition func(context.Context) error) error {
	seen, last, idle := -1, error(nil), t.newPause(ctx)
	return t.wait(ctx, t.Operator.Timeout, what, func(ctx context.Context) error {
		if idle.mustAsk() {
			last = condition(ctx)
			return last
		}
		version := t.store.version(t.Namespace)
		if version == seen && t.Operator.External == nil {
			return last
		}
		if last = condition(context.WithValue(ctx, cachedKey{}, true)); last != nil {
			seen = version
			return last
		}
		return condition(ctx)
	}, idle)
}

// Throughout checks that a condition holds for the whole duration.
func (t *Trial) Throughout(ctx context.Context, duration time.Duration, what string, condition func(context.Context) error) error {
	end := time.Now().Add(duration)
	return t.Until(ctx, func() bool { return time.Now().After(end) }, what, condition)
}

// Until checks that a condition keeps holding until over returns true.
func (t *Trial) Until(ctx context.Context, over func() bool, what string, condition func(context.Context) error) error {
	var failed error // its cause may be the end of some other context
	_ = wait.PollUntilContextCancel(ctx, testcluster.PollInterval, true, func(context.Context) (bool, error) {
		if failed = t.lookAfter(); failed == nil {
			failed = condition(ctx)
		}
		return failed == nil && over(), failed
	})
	if ctx.Err() != nil {
		return fmt.Errorf("expected %s\nfound: the trial was cancelled, or its time is up: %w", what, ctx.Err())
	}
	if failed != nil {
		return fmt.Errorf("expected %s\nfound: %w", what, failed)
	}
	return nil
}

package behaviours

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

const (
	// failuresPerKind is how many of the first writes of each kind, such as "create configmaps", fail in each phase of a
	// lifecycle. Of the reads, only the first of each kind fails, because an informer waits longer before a retry than an
	// operator's work queue does.
	failuresPerKind = 2
	// laterFailures is how many more writes fail at most in each phase, no two of them of the same kind and to the same
	// object. The number is small, because an operator's wait before a retry doubles with each failure.
	laterFailures = 3
	// maxRestarts bounds how often an operator may exit before its first write because a request that it needs fails.
	// Kubernetes would restart it, and so does the kit.
	maxRestarts = 10
)

var faults = behaviour{
	name:    "faults",
	promise: "reaches the desired state in the end although requests fail",
	advice: "how errors are handled: return each from the reconcile, so that the queue retries; a conflict is not a success, so read the object again; " +
		"after a lost reply the work may already be done, so check before doing it again; don't exit when a watch breaks, because informers restart it",
	check: func(ctx context.Context, runner *trial.Runner) error {
		life, _, err := undisturbed(ctx, runner)
		if err != nil {
			return err
		}
		cases := faultCases()
		var disturbed atomic.Bool
		err = trial.Each(ctx, len(cases), func(ctx context.Context, i int) error {
			return runner.Try(ctx, cases[i].what, func(ctx context.Context, t *trial.Trial) error {
				err := tryFault(ctx, t, life, cases[i])
				if t.NotTried == "" {
					disturbed.Store(true)
				}
				return err
			})
		})
		if err == nil && !disturbed.Load() && runner.OnlyTrial == "" {
			return errors.New("expected the operator to make requests while a resource is created, changed and deleted\nfound none that could fail")
		}
		return err
	},
}

// fault is a way in which requests fail.
type fault struct {
	// what completes "while …".
	what   string
	decide func(request traffic.Request, now *phase) traffic.Action
}

// faultCases returns the faults to try, those that take longest first.
func faultCases() []fault {
	return []fault{
		{"watches break in the middle", cutWatches},
		{"the API server asks to wait (429 Too Many Requests, Retry-After)", delayVerbs()},
		{"requests take effect, but their replies get lost", repeat(anyRequest, traffic.Action{Lose: io.ErrUnexpectedEOF})},
		{"the API server has forgotten where broken watches were (410 Gone)", expireWatches()},
		{"requests get no reply in time and never arrive", repeat(anyRequest, traffic.Action{Drop: os.ErrDeadlineExceeded})},
		serverErrors,
		{"the API server is busy (429 Too Many Requests)", repeat(anyRequest, answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests))},
		{"others write at the same time (409 Conflict)", repeat(canConflict, answer(http.StatusConflict, metav1.StatusReasonConflict))},
	}
}

var serverErrors = fault{
	"the API server fails (500 Internal Server Error)", repeat(anyRequest, answer(http.StatusInternalServerError, metav1.StatusReasonInternalError)),
}

func answer(code int, reason metav1.StatusReason) traffic.Action {
	return traffic.Action{Answer: &traffic.Answer{Code: code, Reason: reason}}
}

func anyRequest(traffic.Request) bool { return true }

// canConflict reports whether a request changes or deletes an existing object, which someone else may have changed.
func canConflict(request traffic.Request) bool { return request.IsWrite() && request.Verb != "create" }

// repeat disturbs the first matching requests of each kind in each phase, and then some later writes (see phase.fails).
func repeat(matches func(traffic.Request) bool, action traffic.Action) func(traffic.Request, *phase) traffic.Action {
	return func(request traffic.Request, now *phase) traffic.Action {
		if !matches(request) || !now.fails(request) {
			return traffic.Action{}
		}
		return action
	}
}

// delayVerbs asks the client to wait, once for each verb that writes. The shortest wait that a reply can ask for is a
// second.
func delayVerbs() func(traffic.Request, *phase) traffic.Action {
	delayed := map[string]bool{}
	return func(request traffic.Request, _ *phase) traffic.Action {
		if !request.IsWrite() || delayed[request.Verb] {
			return traffic.Action{}
		}
		delayed[request.Verb] = true
		busy := answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
		busy.Answer.RetryAfter = time.Second
		return busy
	}
}

// cutWatches breaks the watches at the first write of each phase, so that the operator misses the write's
// consequences.
func cutWatches(request traffic.Request, now *phase) traffic.Action {
	return traffic.Action{CutWatches: request.IsWrite() && now.count("write") == 1}
}

// expireWatches breaks the watches at the very first write. From then on, the first watch of each kind in each phase is
// answered as if the API server could not resume it.
func expireWatches() func(traffic.Request, *phase) traffic.Action {
	cut := false
	return func(request traffic.Request, now *phase) traffic.Action {
		switch {
		case !cut && request.IsWrite():
			cut = true
			return traffic.Action{CutWatches: true}
		case cut && request.Verb == "watch" && now.count(request.Kind()) == 1:
			return answer(http.StatusGone, metav1.StatusReasonExpired)
		}
		return traffic.Action{}
	}
}

func tryFault(ctx context.Context, t *trial.Trial, life *lifecycle, fault fault) error {
	disturbed, err := withFault(ctx, t, life, fault)
	if err == nil && !disturbed {
		t.NotTried = "nothing to disturb: the operator makes no such request"
	}
	return err
}

// withFault runs a lifecycle with a fault, and reports whether the fault disturbed the operator.
func withFault(ctx context.Context, t *trial.Trial, life *lifecycle, fault fault) (disturbed bool, err error) {
	injector := &faultInjector{fault: fault, now: newPhase()}
	operator := t.StartOn(injector.tap(), operatortest.RunOptions{})
	restarts := 0
	t.BeforeLook = func() error {
		err := t.Ended()
		if err == nil {
			return nil
		}
		if len(operator.Writes()) > 0 || restarts == maxRestarts {
			return fmt.Errorf("when requests fail, the operator may exit only before its first write, and at most %d times: %w", maxRestarts, err)
		}
		restarts++
		operator.Stopped = true
		operator = t.StartOn(injector.tap(), operatortest.RunOptions{})
		return nil
	}
	err = runLifecycle(ctx, t, life, func(context.Context) error {
		injector.nextPhase()
		return nil
	})
	if err != nil {
		return true, fmt.Errorf("while %s:\n%w", fault.what, err)
	}
	disturbed, spared := injector.result()
	if spared != "" {
		t.Remark = spared
	}
	return disturbed, nil
}

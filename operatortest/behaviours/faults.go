package behaviours

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

const (
	// failuresPerKind is how many writes of each kind fail in each phase of a lifecycle. Of all other requests, only
	// the first fails, because informers wait longer before they retry.
	failuresPerKind = 2
	// maxRestarts bounds how often an operator may exit before its first write because the API server doesn't answer
	// a request that it needs. Kubernetes would restart it, and so does the kit.
	maxRestarts = 10
)

var faults = behaviour{
	name:    "faults",
	promise: "reaches the desired state in the end although requests fail",
	advice: "how errors are handled: return each from the reconcile, so that the queue retries; a conflict is not a success, so read the object again; " +
		"after a lost reply the work may already be done, so check before doing it again; don't exit when a watch breaks, because informers restart it",
	check: func(ctx context.Context, runner *trial.Runner) error {
		life, err := newLifecycle(ctx, runner)
		if err != nil {
			return err
		}
		if _, err := undisturbed(ctx, runner, life); err != nil {
			return err
		}
		cases := faultCases()
		return trial.Each(ctx, len(cases), func(ctx context.Context, i int) error {
			return runner.Try(ctx, cases[i].what, func(ctx context.Context, t *trial.Trial) error { return withFault(ctx, t, life, cases[i]) })
		})
	},
}

// fault is a way in which requests fail.
type fault struct {
	// what completes "while …".
	what string
	// decide is the rule. count returns how many requests with a key there have been in this phase of the lifecycle,
	// including this one.
	decide func(request traffic.Request, count func(key string) int) traffic.Action
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

// canConflict reports whether a request concerns an object that someone else may have changed.
func canConflict(request traffic.Request) bool { return request.IsWrite() && request.Verb != "create" }

// repeat disturbs the first requests of each kind in each phase.
func repeat(matches func(traffic.Request) bool, action traffic.Action) func(traffic.Request, func(string) int) traffic.Action {
	return func(request traffic.Request, count func(string) int) traffic.Action {
		limit := 1
		if request.IsWrite() {
			limit = failuresPerKind
		}
		if !matches(request) || count(request.Kind()) > limit {
			return traffic.Action{}
		}
		return action
	}
}

// delayVerbs asks the client to wait, once for each verb. The shortest wait that a reply can ask for is a second.
func delayVerbs() func(traffic.Request, func(string) int) traffic.Action {
	delayed := map[string]bool{}
	return func(request traffic.Request, _ func(string) int) traffic.Action {
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
func cutWatches(request traffic.Request, count func(string) int) traffic.Action {
	return traffic.Action{CutWatches: request.IsWrite() && count("write") == 1}
}

// expireWatches breaks the watches at the very first write, and makes the API server refuse to resume them.
func expireWatches() func(traffic.Request, func(string) int) traffic.Action {
	cut := false
	return func(request traffic.Request, count func(string) int) traffic.Action {
		switch {
		case !cut && request.IsWrite():
			cut = true
			return traffic.Action{CutWatches: true}
		case cut && request.Verb == "watch" && count(request.Kind()) == 1:
			return answer(http.StatusGone, metav1.StatusReasonExpired)
		}
		return traffic.Action{}
	}
}

// withFault runs a lifecycle while requests fail.
func withFault(ctx context.Context, t *trial.Trial, life *lifecycle, fault fault) error {
	injector := &faultInjector{fault: fault, counts: map[string]int{}}
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
	err := runLifecycle(ctx, t, life, func(context.Context) error {
		injector.nextPhase()
		return nil
	})
	if err != nil {
		return fmt.Errorf("while %s:\n%w", fault.what, err)
	}
	return nil
}

// faultInjector makes requests fail, and counts them in each phase of a lifecycle.
type faultInjector struct {
	fault fault

	mu     sync.Mutex
	counts map[string]int
}

// tap returns a new Tap, also for an operator that is restarted.
func (i *faultInjector) tap() *traffic.Tap {
	tap := traffic.New()
	tap.SetRule(i.decide)
	return tap
}

// decide doesn't interfere with leader election, which has a behaviour of its own, or with requests that are not for
// a resource: after a failed discovery, libraries wait up to 10 seconds.
func (i *faultInjector) decide(request traffic.Request) traffic.Action {
	if request.IsLease() || request.Resource == "" {
		return traffic.Action{}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fault.decide(request, func(key string) int {
		i.counts[key]++
		return i.counts[key]
	})
}

func (i *faultInjector) nextPhase() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.counts = map[string]int{}
}

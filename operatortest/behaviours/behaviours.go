package behaviours

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/operator-workshop/operatortest/internal/trial"
)

// behaviour is something that an operator must do, unless it is left out for that operator.
type behaviour struct {
	// name identifies the behaviour in specs and reports.
	name string
	// promise completes "the operator …".
	promise string
	// advice says what to look at in the code of an operator that fails.
	advice string
	// needsChild is true if the behaviour can't be tried on an operator without Children.
	needsChild bool
	// after names the behaviour on which this one builds: if that fails, a failure of this one says nothing new.
	// It is empty if this one builds on none.
	after string
	// alone means that no other behaviour may be tried in the test process at the same time.
	alone bool
	check func(context.Context, *trial.Runner) error
	// afterAll evaluates the trials of all behaviours that run in parallel, once these have ended. It is nil if only the
	// behaviour's own trials count.
	afterAll func(*trial.Runner) error
}

// behaviours are in the order in which a new operator should implement them.
var behaviours = []behaviour{
	converges,
	silent,
	frugal,
	drift,
	collision,
	update,
	transitions,
	misoperation,
	deletion,
	earlyDeletion,
	namespaceDeletion,
	neighbours,
	crash,
	faults,
	history,
	stale,
	timeTravel,
	leastPrivilege,
	failover,
	secrets,
	growth,
	shutdown,
}

// errNotTried means that a behaviour counts as not tried: the operator lacks another one on which it builds, or the kit
// has seen no log to search.
var errNotTried = errors.New("not tried")

func (b behaviour) try(ctx context.Context, runner *trial.Runner) error {
	if b.name != converges.name && !b.alone {
		if _, err := runner.Fresh(ctx, nil); err != nil && ctx.Err() == nil {
			found := trial.Brief(err)
			if refused := trial.Forbidden(err); len(refused) > 0 {
				found = fmt.Sprintf("requests refused with 403, perhaps because the role lacks a permission: %s\n%s", strings.Join(refused, ", "), found)
			}
			return fmt.Errorf("behaviour %q: %w, because the sample does not converge even when undisturbed: fix that first, with the behaviour %q\n%s",
				b.name, errNotTried, converges.name, found)
		}
	}
	err := b.check(trial.WithParallel(trial.WithBehaviour(ctx, b.name), runner.Operator.Parallel), runner)
	return b.explain(err)
}

// explain adds the behaviour to an error.
func (b behaviour) explain(err error) error {
	if errors.Is(err, errNotTried) {
		return fmt.Errorf("behaviour %q: %w", b.name, err)
	}
	if err != nil {
		return &failure{behaviour: b, cause: err}
	}
	return nil
}

// failure says which behaviour an operator lacks.
type failure struct {
	behaviour behaviour
	cause     error
}

// Unwrap returns what was found.
func (v *failure) Unwrap() error { return v.cause }

func (v *failure) Error() string {
	return "behaviour \"" + v.behaviour.name + "\": the operator " + v.behaviour.promise + "\n" +
		v.cause.Error() + "\n" +
		"what to look at: " + v.behaviour.advice + "\n" +
		"to try this behaviour alone: go test -ginkgo.label-filter=" + v.behaviour.name
}

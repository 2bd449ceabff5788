package trial

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// ParallelTrials is the maximum number of an operator's trials that run in parallel, across all behaviours, unless
// Operator.Parallel or OPERATORTEST_PARALLEL gives another number. Trials mostly wait for the cluster, so there may be
// more of them than cores. Trials whose results others wait for don't count.
const ParallelTrials = 12

// Case is one trial of a behaviour.
type Case struct {
	// Name says how this trial differs from the others; the report shows it.
	Name string
	Try  func(context.Context, *Trial) error
}

// TryAll tries the cases in parallel, and returns the same error as [Each].
func (runner *Runner) TryAll(ctx context.Context, cases []Case) error {
	return Each(ctx, len(cases), func(ctx context.Context, i int) error { return runner.Try(ctx, cases[i].Name, cases[i].Try) })
}

type (
	allKey      struct{}
	parallelKey struct{}
)

// WithParallel limits how many calls [Each] makes in parallel.
func WithParallel(ctx context.Context, most int) context.Context {
	return context.WithValue(ctx, parallelKey{}, most)
}

func parallel(ctx context.Context) int {
	if most, found := ctx.Value(parallelKey{}).(int); found {
		return most
	}
	return ParallelTrials
}

// WithAll makes [Each] continue after a failure, and report all failures.
func WithAll(ctx context.Context) context.Context { return context.WithValue(ctx, allKey{}, true) }

// Each calls a function with the numbers 0 to n-1, as many in parallel as [WithParallel] allows or, without it,
// [ParallelTrials]. It returns the error of the failed call with the lowest number. A failure ends only the calls with
// higher numbers, so the result doesn't depend on which call is quicker.
// With [WithAll], a failure ends no other call, and the error names the other failures, too.
func Each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	if ctx.Value(allKey{}) != nil {
		return eachOfAll(ctx, n, do)
	}
	var mu sync.Mutex
	lowest, first := n, error(nil)
	cancels := make([]context.CancelFunc, n)
	contexts := make([]context.Context, n)
	for i := range n {
		contexts[i], cancels[i] = context.WithCancel(ctx)
		defer cancels[i]()
	}
	group := &errgroup.Group{}
	group.SetLimit(parallel(ctx))
	for i := range n {
		group.Go(func() error {
			if contexts[i].Err() != nil {
				return ctx.Err() // a call with a lower number failed, or the time is up
			}
			err := do(contexts[i], i)
			mu.Lock()
			defer mu.Unlock()
			if err == nil || i > lowest {
				return nil
			}
			lowest, first = i, err
			for _, cancel := range cancels[i+1:] {
				cancel()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil && first == nil {
		return err
	}
	return first
}

func eachOfAll(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	errs := make([]error, n)
	group := &errgroup.Group{}
	group.SetLimit(parallel(ctx))
	for i := range n {
		group.Go(func() error {
			if ctx.Err() == nil {
				errs[i] = do(ctx, i)
			}
			return nil
		})
	}
	_ = group.Wait() // each function stores its error itself
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return together(slices.DeleteFunc(errs, func(err error) bool { return err == nil }))
}

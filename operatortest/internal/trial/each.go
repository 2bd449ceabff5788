package trial

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// ParallelTrials is how many trials run side by side, of all behaviours. They
// mostly wait for the cluster, so it is more than there are cores.
const ParallelTrials = 12

// Case is one trial of a behaviour.
type Case struct {
	// Name says what is special about this trial, in the words of the report.
	Name string
	Try  func(context.Context, *Trial) error
}

// TryAll tries the cases side by side, and returns the error of the first in the list that fails.
func (runner *Runner) TryAll(ctx context.Context, cases []Case) error {
	return Each(ctx, len(cases), func(ctx context.Context, i int) error { return runner.Try(ctx, cases[i].Name, cases[i].Try) })
}

type allKey struct{}

// WithAll has [Each] go on after a failure, and report all of them.
func WithAll(ctx context.Context) context.Context { return context.WithValue(ctx, allKey{}, true) }

// Each runs a function for 0 to n-1, several side by side, and returns the
// error of the lowest number that fails. One that fails ends those above it
// only, so that the same number is reported whichever is quicker. With [WithAll] it ends none, and the error names the others, too.
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
	group.SetLimit(ParallelTrials)
	for i := range n {
		group.Go(func() error {
			if contexts[i].Err() != nil {
				return ctx.Err() // a lower one failed, or the time is up
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
	group.SetLimit(ParallelTrials)
	for i := range n {
		group.Go(func() error {
			if ctx.Err() == nil {
				errs[i] = do(ctx, i)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions keep their errors
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return together(slices.DeleteFunc(errs, func(err error) bool { return err == nil }))
}

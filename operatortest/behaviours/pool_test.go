package behaviours

import (
	"context"
	"errors"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// sideBySide is how many operators of the pool are tried at a time: most of the time is spent waiting for them.
const sideBySide = 10

// pool tries the operators of several specs in parallel. Unless Ginkgo's flags focus or skip specs, the first of these
// specs starts the operators of all, so that no spec waits for another one's slowest operator. Specs outside the pool
// start when no operator of the pool is being tried.
var pool struct {
	attempts []*attempt
	slots    chan struct{}
	running  sync.WaitGroup
	// ctx ends the remaining attempts when the suite ends.
	ctx    context.Context
	cancel context.CancelFunc
}

type attempt struct {
	try   func(context.Context) error
	begin sync.Once
	done  chan struct{}
	err   error
}

const pooled = "pooled"

// inPool declares a spec that succeeds if all tries do.
func inPool(text string, tries ...func(context.Context) error) {
	own := make([]*attempt, len(tries))
	for i, try := range tries {
		own[i] = &attempt{try: try, done: make(chan struct{})}
	}
	pool.attempts = append(pool.attempts, own...)
	It(text, Label(pooled), func(ctx SpecContext) {
		begin(own)
		if suite, _ := GinkgoConfiguration(); len(suite.FocusStrings)+len(suite.FocusFiles)+len(suite.SkipStrings)+len(suite.SkipFiles) == 0 {
			begin(pool.attempts)
		}
		var errs []error
		for _, each := range own {
			select {
			case <-each.done:
				errs = append(errs, each.err)
			case <-ctx.Done():
				errs = append(errs, context.Cause(ctx))
			}
		}
		Expect(errors.Join(errs...)).NotTo(HaveOccurred())
	})
}

// pooledIt declares a spec of the pool. Its expectations must use g.
func pooledIt(text string, body func(ctx context.Context, g Gomega)) bool { //nolint:unparam // for var _ =, like the result of Ginkgo's It
	inPool(text, func(ctx context.Context) (err error) {
		defer func() {
			if reason := recover(); reason != nil {
				failed, isExpectation := reason.(unexpected)
				if !isExpectation {
					panic(reason)
				}
				err = failed
			}
		}()
		body(ctx, NewGomega(func(message string, _ ...int) { panic(unexpected(message)) }))
		return nil
	})
	return true
}

// unexpected is the message of a failed expectation in a pooled spec.
type unexpected string

func (u unexpected) Error() string { return string(u) }

func begin(attempts []*attempt) {
	if pool.slots == nil {
		pool.slots = make(chan struct{}, sideBySide)
		pool.ctx, pool.cancel = context.WithCancel(context.Background())
	}
	for _, each := range attempts {
		each.begin.Do(func() {
			pool.running.Go(func() {
				defer close(each.done)
				pool.slots <- struct{}{}
				defer func() { <-pool.slots }()
				each.err = each.try(pool.ctx)
			})
		})
	}
}

var _ = BeforeEach(func() {
	if !slices.Contains(CurrentSpecReport().Labels(), pooled) {
		pool.running.Wait()
	}
})

var _ = AfterSuite(func() {
	if pool.cancel != nil {
		pool.cancel()
		pool.running.Wait()
	}
})

package operatortest

import (
	"context"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
)

// behaviourTimeout bounds a behaviour with all its trials.
const behaviourTimeout = 5 * time.Minute

// behaviour is something that every operator must do.
type behaviour struct {
	// name is what the specs and the reports call it.
	name string
	// promise completes "the operator …".
	promise string
	// advice says what an operator that fails most likely lacks.
	advice string
	// needsChild says that the behaviour can't be tried on an operator without Children.
	needsChild bool
	check      func(context.Context, *lab) error
}

// behaviours are in the order in which a new operator best learns them.
var behaviours = []behaviour{
	converges,
	silent,
	frugal,
	drift,
	collision,
	update,
	transitions,
	deletion,
	crash,
	faults,
	stale,
	leastPrivilege,
	failover,
	shutdown,
}

// DescribeBehaviours makes a spec of each behaviour that every operator must
// have. Call it where a Describe may stand, with a cluster that the suite starts
// in its BeforeSuite. The spec of a behaviour is labelled with its name.
func DescribeBehaviours(operator Operator, cluster *Cluster) {
	var once sync.Once
	var shared *lab
	var err error
	ginkgo.Describe("the operator", func() {
		for _, behaviour := range behaviours {
			ginkgo.It(behaviour.promise, ginkgo.Label(behaviour.name), func(ctx ginkgo.SpecContext) {
				if behaviour.needsChild && len(operator.Children) == 0 {
					ginkgo.Skip("disturbs the operator's children, and Operator.Children declares none")
				}
				once.Do(func() { shared, err = newLab(ctx, operator, cluster) })
				if err != nil {
					ginkgo.Fail(err.Error())
				}
				if err := behaviour.try(ctx, shared); err != nil {
					ginkgo.Fail(err.Error())
				}
			}, ginkgo.NodeTimeout(behaviourTimeout))
		}
	})
}

func (b behaviour) try(ctx context.Context, lab *lab) error {
	if err := b.check(ctx, lab); err != nil {
		return &verdict{behaviour: b, cause: err}
	}
	return nil
}

// verdict says which behaviour an operator lacks.
type verdict struct {
	behaviour behaviour
	cause     error
}

// Unwrap returns what was found.
func (v *verdict) Unwrap() error { return v.cause }

func (v *verdict) Error() string {
	return "behaviour \"" + v.behaviour.name + "\": the operator " + v.behaviour.promise + "\n" +
		v.cause.Error() + "\n" +
		"what to look at: " + v.behaviour.advice + "\n" +
		"to try this behaviour alone: go test -ginkgo.label-filter=" + v.behaviour.name
}

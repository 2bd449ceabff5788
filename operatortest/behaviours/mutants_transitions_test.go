package behaviours

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/internal/trial"
)

var _ = It("catches every operator that depends on the past, in as few steps as possible", func(ctx SpecContext) {
	expected := map[mutation]string{
		keepsColour:  `2. change the spec to {"configMapName":"settings","size":2}`,
		leaksRenamed: `2. change the spec to {"colour":"green","configMapName":"tuning","size":2}`,
	}
	var mu sync.Mutex
	reports := map[mutation]error{}
	var all sync.WaitGroup
	for mutation := range expected {
		all.Go(func() {
			err := transit(ctx, mutation)
			mu.Lock()
			defer mu.Unlock()
			reports[mutation] = err
		})
	}
	all.Wait()
	for mutation, report := range expected {
		Expect(reports[mutation]).To(MatchError(And(
			HavePrefix("behaviour %q: the operator ", transitions.name),
			ContainSubstring("after step 2 the same final state as that of a new resource"), ContainSubstring(report), ContainSubstring("drawn from Operator.Seed 4"))))
		steps := stepsOf(reports[mutation].Error())
		Expect(steps).To(HaveLen(2))
		Expect(steps[0]).To(Equal(`1. create it with {"colour":"green","configMapName":"settings","size":2}`), "the sample is the simplest spec")
	}
})

// transit tries the transitions of an operator with a flaw. The random choices, and so the results, are the same in
// each run.
func transit(ctx context.Context, mutation mutation) error {
	operator := gadgetOperator(mutation)
	operator.Timeout, operator.Seed = catchTimeout, 4
	runner, err := trial.NewRunner(ctx, operator, cluster)
	if err != nil {
		return err
	}
	defer runner.Close()
	runner.ShrinkTime = 5 * time.Minute // a busy machine needs more time than users would wait
	return transitions.try(ctx, runner)
}

// stepsOf returns the numbered lines of a report.
func stepsOf(report string) []string {
	var steps []string
	for line := range strings.Lines(report) {
		if step := strings.TrimSpace(line); strings.HasPrefix(step, strconv.Itoa(len(steps)+1)+". ") {
			steps = append(steps, step)
		}
	}
	return steps
}

var _ = Describe("the test kit", func() {
	catches("does not recover from an unmeetable spec",
		mutant{transitions, staysRefused, "ConfigMap belongs to someone else, and"},
		mutant{transitions, missesRemoval, "a resource's ConfigMap belongs to someone else, and then that went away"},
		mutant{transitions, keepsStatus, "expected the status to say that it can't be met: a resource whose ConfigMap belongs to someone else"},
		mutant{transitions, claimsSuccess, "condition Ready is True"},
	)
})

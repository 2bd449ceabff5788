package behaviours

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/internal/trial"
)

var _ = Describe("the test kit", func() {
	shortest := func(mutation mutation, change string) func(context.Context) error {
		return func(ctx context.Context) error {
			report := transit(ctx, mutation)
			found := ""
			if report != nil {
				found = report.Error()
			}
			expected := And(
				HavePrefix("behaviour %q: the operator ", transitions.name), ContainSubstring("drawn from Operator.Seed 4"),
				ContainSubstring("the same final state after step 2 as that of a new resource"),
				WithTransform(stepsOf, HaveExactElements(
					`1. create it with {"colour":"green","configMapName":"settings","size":2}`, // the sample is the simplest spec
					"2. change the spec to "+change)),
			)
			if matched, problem := expected.Match(found); !matched || problem != nil {
				return fmt.Errorf("one that %s: %w", mutation, errors.Join(problem, errors.New(expected.FailureMessage(found))))
			}
			return nil
		}
	}
	inPool("catches every operator that depends on the past, and reports as few steps as possible",
		shortest(keepsColour, `{"configMapName":"settings","size":2}`),
		shortest(leaksRenamed, `{"colour":"green","configMapName":"tuning","size":2}`),
	)
})

// transit tries the behaviour transitions on an operator with a flaw. The random choices, and so the results, are the
// same in each run.
func transit(ctx context.Context, mutation mutation) error {
	operator := gadgetOperator(mutation)
	operator.Seed = 4
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
		mutant{transitions, missesRemoval, "a converged resource's ConfigMap belongs to someone else, and then the blocking object was deleted"},
		mutant{transitions, keepsStatus, "expected the status to say that the spec is not met: the Gadget's ConfigMap belongs to someone else"},
		mutant{transitions, claimsSuccess, "condition Ready is True"},
	)
})

package behaviours

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// catchTimeout bounds each wait for something that a broken operator never does. On an idle machine, the correct
// reference operator needs less than a second for it; on a busy one, BeforeSuite raises the bound.
var catchTimeout = 10 * time.Second

// mutant names a flaw of an operator, the behaviour that the operator lacks, and a part of the report that the kit must
// give.
type mutant struct {
	lacking behaviour
	flaw    mutation
	report  string
}

// operator describes the reference operator with the flaw.
func (m mutant) operator() operatortest.Operator {
	operator := gadgetOperator(m.flaw)
	switch {
	case m.lacking.name == secrets.name, m.flaw == trustsMemory, m.flaw == patchesStatus, m.flaw == leavesFormer:
		// These converge, some of them slowly, because requests fail or a second replica has to take over.
	default:
		operator.Timeout = catchTimeout
	}
	if m.flaw == overwrites || m.flaw == adopts {
		operator.Roles = []string{"testdata/gadget/role-generous.yaml"}
	}
	return operator
}

// catches declares a spec that tries broken operators, and fails unless all are caught.
func catches(kind string, operators ...mutant) {
	tries := make([]func(context.Context) error, len(operators))
	for i, each := range operators {
		tries[i] = func(ctx context.Context) error {
			if err := tryReport(ctx, each.lacking, each.operator(), each.report); err != nil {
				return fmt.Errorf("one that %s: %w", each.flaw, err)
			}
			return nil
		}
	}
	inPool("catches every operator that "+kind, tries...)
}

// twin names an operator, and behaviours that it has. Nearly all of these operators are correct, and resemble broken
// ones.
type twin struct {
	sound      mutation
	behaviours []behaviour
}

// accepts declares a spec that tries twins, and fails unless the kit finds that each of them has its behaviours.
func accepts(kind string, operators ...twin) {
	tries := make([]func(context.Context) error, len(operators))
	for i, each := range operators {
		tries[i] = func(ctx context.Context) error {
			runner, err := trial.NewRunner(ctx, gadgetOperator(each.sound), cluster)
			if err != nil {
				return err
			}
			defer runner.Close()
			for _, behaviour := range each.behaviours {
				if err := behaviour.try(ctx, runner); err != nil {
					return fmt.Errorf("one that %s lacks %s: %w", each.sound, behaviour.name, err)
				}
			}
			return nil
		}
	}
	inPool("accepts every operator that "+kind, tries...)
}

// nameMutant returns the name of an entry in a DescribeTable whose body is expectCaught.
func nameMutant(lacking behaviour, flaw mutation, _ string) string {
	return fmt.Sprintf("by the behaviour %s: it %s", lacking.name, flaw)
}

// expectCaught expects a report about a broken operator. The specs that call it are outside the pool, so no other
// operator is being tried.
func expectCaught(ctx context.Context, lacking behaviour, mutation mutation, report string) {
	GinkgoHelper()
	expectReport(ctx, lacking, mutant{flaw: mutation}.operator(), report)
}

// expectReport tries a behaviour on an operator, and expects a failure that names the behaviour and the problem.
func expectReport(ctx context.Context, lacking behaviour, operator operatortest.Operator, report string) {
	GinkgoHelper()
	Expect(tryReport(ctx, lacking, operator, report)).To(Succeed())
}

// tryReport is like expectReport, but returns an error if there is no such failure.
func tryReport(ctx context.Context, lacking behaviour, operator operatortest.Operator, report string) error {
	runner, err := trial.NewRunner(ctx, operator, cluster)
	if err != nil {
		return err
	}
	defer runner.Close()
	return tryReportIn(ctx, runner, lacking, report)
}

func tryReportIn(ctx context.Context, runner *trial.Runner, lacking behaviour, report string) error {
	err := lacking.try(ctx, runner)
	expected := MatchError(And(
		HavePrefix("behaviour %q: the operator ", lacking.name),
		ContainSubstring(report),
		ContainSubstring("what to look at: "),
	))
	matched, problem := expected.Match(err)
	if problem != nil {
		return fmt.Errorf("behaviour %q passed, although the operator lacks it: %w", lacking.name, problem)
	}
	if !matched {
		return errors.New(expected.FailureMessage(err))
	}
	return nil
}

// Flaws that show even if the operator isn't killed, the API server answers its requests, and its caches are current.
const (
	forgetsGeneration mutation = "writes observedGeneration neither to its condition nor to the status"
	writesAlways      mutation = "writes the status in every reconcile"
	writesInSteps     mutation = "writes the status twice before it converges"
	ignoresChildren   mutation = "does not watch its ConfigMaps"
	overwrites        mutation = "sends a newly built ConfigMap instead of the existing one with changes"
	adopts            mutation = "adopts someone else's ConfigMap"
	warnsAlways       mutation = "emits a Warning event in every reconcile"
	warnsNever        mutation = "reports someone else's ConfigMap only with a condition"
	keepsFinalizer    mutation = "never removes its finalizer"
	leaksParcel       mutation = "leaves its parcel in the warehouse"
	writesWhileHeld   mutation = "keeps writing while another finalizer holds the gadget"
	removesAgain      mutation = "removes its finalizer again whenever it sees a deleted gadget"
	removesOthers     mutation = "also removes others' finalizers"
	forgetsOnError    mutation = "removes its finalizer although the warehouse is closed"
)

var _ = Describe("the test kit", func() {
	catches("has a flaw that shows without kills or failing requests",
		mutant{converges, forgetsGeneration, "expected observedGeneration in condition Ready, or in the status\nfound neither"},
		mutant{silent, writesAlways, "expected no write request while"},
		mutant{frugal, writesInSteps, "expected at most 3 write requests that take effect"},
		mutant{drift, ignoresChildren, "ConfigMap settings to be restored after a change"},
		mutant{drift, overwrites, "theirs"},
		mutant{collision, adopts, "no condition has a message that names it"},
		mutant{collision, warnsAlways, "again and again"},
		mutant{collision, warnsNever, "no Warning event about the resource names it"},
		mutant{deletion, keepsFinalizer, `held by its finalizers ["test.example.com/parcel"]`},
		mutant{deletion, leaksParcel, "gadget: size 2"},
		mutant{deletion, writesWhileHeld, "it keeps writing"},
		mutant{deletion, removesAgain, "expected no write request while another finalizer holds the resource"},
		mutant{deletion, removesOthers, "expected the operator to clean up and to remove only its own finalizer"},
		mutant{deletion, forgetsOnError, "expected the resource to exist until what is outside Kubernetes is cleaned up"},
	)
})

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

// catchTimeout bounds the waits for what a broken operator never does. The sound reference operator needs less than a
// second on an idle machine; on a busy one, BeforeSuite gives it more.
var catchTimeout = 5 * time.Second

// mutant is an operator with a flaw, the behaviour that it lacks, and a part of the report that the kit must give.
type mutant struct {
	lacking behaviour
	flaw    mutation
	report  string
}

// operator is the reference operator with the flaw.
func (m mutant) operator() operatortest.Operator {
	operator := gadgetOperator(m.flaw)
	operator.Timeout = catchTimeout
	if m.flaw == overwrites || m.flaw == adopts {
		operator.Roles = []string{"testdata/gadget/role-generous.yaml"}
	}
	return operator
}

// catches declares a spec that tries broken operators, and fails for those that are not caught.
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

// twin is a sound operator that resembles a broken one, and behaviours that it has.
type twin struct {
	sound      mutation
	behaviours []behaviour
}

// accepts declares a spec that tries sound operators, and fails for those that are reported.
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

// nameMutant is what an entry of a table with expectCaught is called.
func nameMutant(lacking behaviour, flaw mutation, _ string) string {
	return fmt.Sprintf("by the behaviour %s: it %s", lacking.name, flaw)
}

// expectCaught is for an operator that must be tried alone, because it disturbs the whole process.
func expectCaught(ctx context.Context, lacking behaviour, mutation mutation, report string) {
	GinkgoHelper()
	expectReport(ctx, lacking, mutant{flaw: mutation}.operator(), report)
}

// expectReport tries a behaviour on an operator, and expects a report that names the behaviour and what is wrong.
func expectReport(ctx context.Context, lacking behaviour, operator operatortest.Operator, report string) {
	GinkgoHelper()
	Expect(tryReport(ctx, lacking, operator, report)).To(Succeed())
}

// tryReport returns an error if there is no such report.
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
		return fmt.Errorf("behaviour %q was found where it is lacking: %w", lacking.name, problem)
	}
	if !matched {
		return errors.New(expected.FailureMessage(err))
	}
	return nil
}

// Flaws in the simple life of a resource.
const (
	forgetsGeneration mutation = "writes no observedGeneration, neither into its condition nor beside it"
	writesAlways      mutation = "writes the status in every reconcile"
	writesInSteps     mutation = "writes the status twice on the way"
	ignoresChildren   mutation = "does not watch its ConfigMaps"
	overwrites        mutation = "sends a new ConfigMap instead of the changed old one"
	adopts            mutation = "makes a foreign ConfigMap its own"
	warnsAlways       mutation = "gives a warning in every reconcile"
	warnsNever        mutation = "tells of a foreign ConfigMap by a condition only"
	keepsFinalizer    mutation = "never takes its finalizer off"
	leaksParcel       mutation = "leaves its parcel in the warehouse"
	writesWhileHeld   mutation = "writes for ever while another finalizer holds the gadget"
	removesAgain      mutation = "takes its finalizer off again whenever it sees a deleted gadget"
	removesOthers     mutation = "takes others' finalizers off, too"
	forgetsOnError    mutation = "takes its finalizer off although the warehouse is closed"
)

var _ = Describe("the test kit", func() {
	catches("fails in the simple life",
		mutant{converges, forgetsGeneration, "expected observedGeneration in condition Ready, or in the status\nfound neither"},
		mutant{silent, writesAlways, "expected no write request while"},
		mutant{frugal, writesInSteps, "expected at most 3 write requests with effect"},
		mutant{drift, ignoresChildren, "ConfigMap settings to come back after it was changed"},
		mutant{drift, overwrites, "theirs"},
		mutant{collision, adopts, "no condition has a message that names it"},
		mutant{collision, warnsAlways, "again and again"},
		mutant{collision, warnsNever, "no Warning event about the resource names it"},
		mutant{deletion, keepsFinalizer, `held by its finalizers ["test.example.com/parcel"]`},
		mutant{deletion, leaksParcel, "gadget: size 2"},
		mutant{deletion, writesWhileHeld, "it goes on writing"},
		mutant{deletion, removesAgain, "expected no write request while another finalizer holds the resource"},
		mutant{deletion, removesOthers, "expected the operator to clean up and to take off its own finalizer only"},
		mutant{deletion, forgetsOnError, "expected the resource to wait until the world outside is clean"},
	)
})

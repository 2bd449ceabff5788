package operatortest

import (
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = DescribeTable("an operator that remembers the past is caught, by as few steps as possible",
	func(ctx SpecContext, flaw flaw, report string) {
		operator := gadgetOperator(flaw)
		operator.Timeout = changeTimeout
		lab, err := newLab(ctx, operator, cluster)
		Expect(err).NotTo(HaveOccurred())
		lab.seed = 4 // what is drawn at random, and so what is found, must not change from run to run
		err = transitions.try(ctx, lab)
		Expect(err).To(MatchError(And(
			HavePrefix("behaviour %q: the operator ", transitions.name),
			ContainSubstring("after step 2 the same end as that of a new resource"), ContainSubstring(report), ContainSubstring("-ginkgo.seed=4"))))
		AddReportEntry("the report", err.Error(), ReportEntryVisibilityFailureOrVerbose)
		steps := stepsOf(err.Error())
		Expect(steps).To(HaveLen(2))
		Expect(steps[0]).To(Equal(`1. create it with {"colour":"green","configMapName":"settings","size":2}`), "the sample is the simplest spec")
	},
	Entry(nil, keepsColour, `2. change the spec to {"configMapName":"settings","size":2}`),
	Entry(nil, leaksRenamed, `2. change the spec to {"colour":"green","configMapName":"tuning","size":2}`),
)

// stepsOf are the numbered lines of a report.
func stepsOf(report string) []string {
	var steps []string
	for line := range strings.Lines(report) {
		if step := strings.TrimSpace(line); strings.HasPrefix(step, strconv.Itoa(len(steps)+1)+". ") {
			steps = append(steps, step)
		}
	}
	return steps
}

var _ = DescribeTable("an operator that can't find back to a spec it can meet is caught", func(ctx SpecContext, flaw flaw, report string) {
	operator := gadgetOperator(flaw)
	operator.Timeout = changeTimeout
	expectReport(ctx, transitions, operator, report)
},
	Entry(nil, staysRefused, "ConfigMap belongs to somebody else, and"),
	Entry(nil, missesRemoval, "a resource's ConfigMap belongs to somebody else, and then that went away"),
	Entry(nil, keepsStatus, "expected the status to say that it can't be met: a resource whose ConfigMap belongs to somebody else"),
	Entry(nil, claimsSuccess, "condition Ready is True"),
)

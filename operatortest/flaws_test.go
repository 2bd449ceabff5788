package operatortest

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// catchTimeout bounds the waits for what a broken operator never does. A sound
// reference operator needs less than a second.
const catchTimeout = 5 * time.Second

// expectCaught tries a behaviour on the reference operator with a flaw, and
// expects a report that names the behaviour and says what is wrong.
func expectCaught(ctx context.Context, lacking behaviour, flaw flaw, report string) {
	GinkgoHelper()
	operator := gadgetOperator(flaw)
	operator.Timeout = catchTimeout
	if flaw == overwrites || flaw == adopts {
		operator.Roles = []string{"testdata/gadget/role-generous.yaml"}
	}
	expectReport(ctx, lacking, operator, report)
}

// expectReport does the same for any operator.
func expectReport(ctx context.Context, lacking behaviour, operator Operator, report string) {
	GinkgoHelper()
	lab, err := newLab(ctx, operator, cluster)
	Expect(err).NotTo(HaveOccurred())
	err = lacking.try(ctx, lab)
	Expect(err).To(MatchError(And(
		HavePrefix("behaviour %q: the operator ", lacking.name),
		ContainSubstring(report),
		ContainSubstring("what to look at: "),
	)))
	AddReportEntry("the report", err.Error(), ReportEntryVisibilityFailureOrVerbose)
}

// Flaws of the simple life.
const (
	forgetsGeneration flaw = "writes a condition without observedGeneration"
	writesAlways      flaw = "writes the status in every reconcile"
	writesInSteps     flaw = "writes the status twice on the way"
	ignoresChildren   flaw = "does not watch its ConfigMaps"
	overwrites        flaw = "sends a new ConfigMap instead of the changed old one"
	adopts            flaw = "makes a foreign ConfigMap its own"
	warnsAlways       flaw = "gives a warning in every reconcile"
	keepsFinalizer    flaw = "never takes its finalizer off"
	leaksParcel       flaw = "leaves its parcel in the warehouse"
	forgetsOnError    flaw = "takes its finalizer off although the warehouse is closed"
)

var _ = DescribeTable("a broken operator is caught", expectCaught,
	Entry(nil, converges, forgetsGeneration, "has observedGeneration 0, not 1"),
	Entry(nil, silent, writesAlways, "expected no write request while"),
	Entry(nil, frugal, writesInSteps, "expected at most 3 write requests with effect"),
	Entry(nil, drift, ignoresChildren, "ConfigMap settings to come back after it was changed"),
	Entry(nil, drift, overwrites, "theirs"),
	Entry(nil, collision, adopts, "no condition has a message that names it"),
	Entry(nil, collision, warnsAlways, "again and again"),
	Entry(nil, deletion, keepsFinalizer, `held by its finalizers ["test.example.com/parcel"]`),
	Entry(nil, deletion, leaksParcel, "gadget: size 2"),
	Entry(nil, deletion, forgetsOnError, "expected the resource to wait until the world outside is clean"),
)

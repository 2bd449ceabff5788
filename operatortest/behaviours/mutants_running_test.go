package behaviours

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// Flaws in an operator's permissions, leader election and shutdown.
const (
	readsSecrets  mutation = "reads something that its role does not allow"
	ignoresLease  mutation = "runs without leader election"
	keepsWriting  mutation = "continues to work after it has lost its lease"
	neverEnds     mutation = "keeps running after it was told to stop"
	leavesRunning mutation = "leaves a goroutine running"
	givesUp       mutation = "cancels its requests when it is told to stop"
)

// neverBlocks is the reference operator without blockOwnerDeletion, so it needs one fewer permission.
const neverBlocks mutation = "lets a gadget be deleted before its ConfigMap"

var _ = DescribeTable("a flaw in an operator's permissions, leader election or shutdown is caught", expectCaught, nameMutant,
	Entry(nil, leastPrivilege, readsSecrets, "found these refused: list secrets"),
	Entry(nil, failover, ignoresLease, "expected the second replica to write nothing while the first leads"),
	Entry(nil, failover, keepsWriting, "expected the first replica to write nothing once the second does"),
	Entry(nil, shutdown, neverEnds, "its Run has not returned"),
	Entry(nil, shutdown, leavesRunning, "leaveRunning"),
	Entry(nil, shutdown, givesUp, "cancelled by the operator"),
)

var _ = DescribeTable("a role with unused permissions is caught", func(ctx SpecContext, flaw mutation, file, report string) {
	operator := gadgetOperator(flaw)
	operator.Timeout = catchTimeout
	operator.Roles = []string{file}
	expectReport(ctx, leastPrivilege, operator, report)
},
	Entry("with an unused permission", mutation(""), "testdata/gadget/role-generous.yaml", "found these unused: update configmaps (testdata/gadget/role-generous.yaml)"),
	Entry("with update on the owner's finalizers, which no owner reference needs", neverBlocks, "testdata/gadget/role.yaml", "found these unused: update gadgets.test.example.com/finalizers"),
	Entry("with a wildcard", mutation(""), "testdata/gadget/role-wildcard.yaml", "found these unused: * *.*"),
)

var _ = pooledIt("an operator that sets blockOwnerDeletion without the permission for it is caught", func(ctx context.Context, g Gomega) {
	operator := gadgetOperator("")
	operator.Timeout = catchTimeout
	operator.Roles = []string{"testdata/gadget/role-unblocking.yaml"}
	g.Expect(tryReport(ctx, converges, operator, "/settings: 403")).To(Succeed())
})

var _ = pooledIt("a missing permission is named even if the sample does not converge without it", func(ctx context.Context, g Gomega) {
	operator := gadgetOperator("")
	operator.Timeout = catchTimeout
	operator.Roles = []string{"testdata/gadget/role-unblocking.yaml"}
	runner, err := trial.NewRunner(ctx, operator, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	g.Expect(leastPrivilege.try(ctx, runner)).To(MatchError(And(
		ContainSubstring("the sample does not converge even when undisturbed"),
		ContainSubstring("\nrequests refused with 403, perhaps because the role lacks a permission: create configmaps\n"))))
})

var _ = pooledIt("an operator that doesn't set blockOwnerDeletion needs no permission for it", func(ctx context.Context, g Gomega) {
	operator := gadgetOperator(neverBlocks)
	operator.Roles = []string{"testdata/gadget/role-unblocking.yaml"}
	runner, err := trial.NewRunner(ctx, operator, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	g.Expect(leastPrivilege.try(ctx, runner)).To(Succeed())
})

var _ = It("an operator that claims to drain its queue, and does not, is caught", func(ctx SpecContext) {
	operator := gadgetOperator("")
	operator.Timeout = catchTimeout
	operator.Drains = true
	expectReport(ctx, shutdown, operator, "expected the operator to finish what was in its queue when it was told to stop")
})

// leaveRunning never returns. It runs in a goroutine for which the operator doesn't wait.
func leaveRunning() { select {} }

// runFlawed runs the reference operator, with or without a flaw. It adds the flaws that concern the whole process.
func runFlawed(ctx context.Context, config *rest.Config, options operatortest.RunOptions, stock *warehouse, mutation mutation) error {
	switch mutation {
	case unheard:
		ctx = logr.NewContext(ctx, logr.Discard())
	case ignoresLease:
		options.LeaderElection = nil
	case losesLease:
		if election := options.LeaderElection; election != nil && election.LeaseDuration < 5*time.Second {
			ctx, config = runMortal(ctx, config, mutation)
		}
	case leavesRunning:
		go leaveRunning()
	case neverEnds:
		ctx = late(ctx)
	case endsOnError, endsWithWatch, endsAtStart, endsOnRefusal:
		ctx, config = runMortal(ctx, config, mutation)
	case panicsInRun:
		panic("there are no gadgets")
	case printsPanic:
		if err := printPanic(options); err != nil {
			return err
		}
	case printsSecret:
		remove, err := printTo(options)
		if err != nil {
			return err
		}
		defer remove()
	case keepsWriting:
		return runTwice(ctx, config, options, stock)
	}
	return runGadgets(ctx, config, options, stock, mutation)
}

// runTwice ignores the loss of the Lease, and continues to work without one.
func runTwice(ctx context.Context, config *rest.Config, options operatortest.RunOptions, stock *warehouse) error {
	if err := runGadgets(ctx, config, options, stock, ""); err == nil {
		return nil
	}
	options.LeaderElection = nil
	return runGadgets(ctx, config, options, stock, "")
}

// late returns a context that ends later than ctx, after the kit has given up waiting.
func late(ctx context.Context) context.Context {
	later, end := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(catchTimeout+time.Second, end) })
	return later
}

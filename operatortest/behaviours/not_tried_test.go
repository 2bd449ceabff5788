package behaviours

import (
	"context"
	"sync/atomic"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/report"
)

// The flaw leaksRenamed shows in every lifecycle in which the ConfigMap's name changes, disturbed or not.
var _ = pooledIt("a flaw in an undisturbed change is reported once", func(ctx context.Context, g Gomega) {
	operator := gadgetOperator(leaksRenamed)
	operator.Timeout, operator.Seed = catchTimeout, 4
	made, err := Run(ctx, operator, cluster, Options{Only: []string{update.name, transitions.name, crash.name, faults.name, stale.name}})
	g.Expect(err).NotTo(HaveOccurred())
	results := map[string]report.Result{}
	for _, behaviour := range made.Behaviours {
		results[behaviour.Name] = behaviour.Result
	}
	g.Expect(results).To(Equal(map[string]report.Result{
		update.name: report.Failed, transitions.name: report.NotTried, crash.name: report.Passed, faults.name: report.Passed, stale.name: report.Passed,
	}), "only \"update\" must fail")
	g.Expect(made.Behaviours[2].Trials).To(ContainElement(HaveField("Remark", ContainSubstring("other changes fail even when undisturbed"))))
	g.Expect(made.Behaviours[1].Failure).To(ContainSubstring(`not tried, because it builds upon the behaviour "update", which has failed`))
})

var _ = pooledIt("a lifecycle that fails no matter which field is changed is reported only once", func(ctx context.Context, g Gomega) {
	operator := gadgetOperator(keepsFinalizer)
	operator.Timeout = catchTimeout
	made, err := Run(ctx, operator, cluster, Options{Only: []string{deletion.name, crash.name, faults.name}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(made.Behaviours).To(HaveExactElements(HaveField("Result", report.Failed), HaveField("Result", report.NotTried), HaveField("Result", report.NotTried)))
	g.Expect(made.Behaviours[1].Failure).To(ContainSubstring("not tried, because creating, changing and deleting a resource fails even when undisturbed"))
})

var _ = pooledIt("a broken operator's failing trials are all listed, not only the first", func(ctx context.Context, g Gomega) {
	operator := gadgetOperator(keepsFinalizer)
	operator.Timeout = catchTimeout
	runner, err := trial.NewRunner(ctx, operator, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	running := newSession(ctx, runner)
	defer running.end()
	running.startAll([]behaviour{deletion})
	g.Expect(running.result(ctx, deletion)).To(MatchError(MatchRegexp(
		`(?s)the operator was running all the time.*3 more failed:\n  deletion/the-operator-is-down: .*\n  deletion/another-finalizer-holds-it: .*\n  deletion/what-is-outside-`)))
})

var _ = pooledIt("a trial that normally follows another one can be run alone", func(ctx context.Context, g Gomega) {
	var begun, ended atomic.Int32 // of the behaviour's own trials
	made, err := Run(ctx, gadgetOperator(""), cluster, Options{Trial: "crash/after-create-configmaps-settings", OnTrial: func(behaviour string, isEnd bool) {
		switch {
		case behaviour == "":
		case isEnd:
			ended.Add(1)
		default:
			begun.Add(1)
		}
	}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]int32{begun.Load(), ended.Load()}).To(Equal([]int32{1, 1}))
	g.Expect(made.Behaviours[0].Trials).To(HaveExactElements(And(
		HaveField("ID", "crash/after-create-configmaps-settings"), HaveField("Result", report.Passed), HaveField("Remark", ""),
	)))
})

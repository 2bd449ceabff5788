package behaviours

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/report"
	"example.com/operator-workshop/operatortest/testcluster"
)

// runReported runs the suite of an operator that doesn't watch its ConfigMaps, in a process of its own on this suite's
// cluster. It expects that suite to fail and to write a report, and returns the suite's output and the report.
func runReported(ctx context.Context, g Gomega, env ...string) (output string, made report.Report) {
	dir, err := os.MkdirTemp("", "operatortest-report-")
	g.Expect(err).NotTo(HaveOccurred())
	defer os.RemoveAll(dir)
	suite := actor(ctx, roleReported, append(env, testcluster.ExistingVariable+"=true", testcluster.KubeconfigVariable+"="+cluster.Kubeconfig, reportVariable+"="+dir)...)
	printed, err := suite.CombinedOutput()
	g.Expect(err).To(HaveOccurred(), string(printed))
	for _, name := range []string{"junit.xml", "report.html"} {
		g.Expect(filepath.Join(dir, "gadget", name)).To(BeAnExistingFile(), string(printed))
	}
	content, err := os.ReadFile(filepath.Join(dir, "gadget", "report.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(json.Unmarshal(content, &made)).To(Succeed())
	return string(printed), made
}

var _ = pooledIt("a suite writes a report with commands, each of which runs one failed trial again", func(ctx context.Context, g Gomega) {
	_, made := runReported(ctx, g)
	g.Expect(made.Behaviours).To(HaveExactElements(HaveField("Name", drift.name)))
	failed := slices.DeleteFunc(slices.Clone(made.Behaviours[0].Trials), func(trial report.Trial) bool { return trial.Result == report.Passed })
	g.Expect(len(failed)).To(And(BeNumerically(">", 1), BeNumerically("<=", len(made.Behaviours[0].Trials))), "a report must have all failures")
	g.Expect(failed[0].Replay).To(Equal("OPERATORTEST_TRIAL=" + failed[0].ID + " go test -ginkgo.label-filter=drift"))
	g.Expect(failed[0].Timeline).To(ContainElement(And(HaveField("Operator", 0), HaveField("What", "create Gadget"))))
	g.Expect(failed[0].Logs).NotTo(BeEmpty())

	output, again := runReported(ctx, g, trialVariable+"="+failed[1].ID)
	g.Expect(again.Behaviours).To(HaveExactElements(HaveField("Trials", HaveExactElements(HaveField("ID", failed[1].ID)))), output)
	g.Expect(output).To(ContainSubstring("the last lines of its log:"))
})

// This is the suite that runReported runs.
var _ = Describe("a reported operator", Label(roleReported), func() {
	operator := gadgetOperator(ignoresChildren)
	operator.Timeout = catchTimeout
	DescribeOperator(operator, cluster)
})

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/behaviours"
	"example.com/operator-workshop/operatortest/report"
)

const example = "../../operatortest/examples/shell/operatortest.yaml"

// The example operator is small: it repairs its ConfigMap and reports one that is refused, but does not wait for a
// write in flight when it is told to stop.
func TestRun(t *testing.T) {
	g := NewWithT(t)
	reports := filepath.Join(t.TempDir(), "reports")
	var output bytes.Buffer
	err := run(t.Context(), runOptions{file: example, seed: 7, reports: reports, Options: behaviours.Options{Only: []string{"schema", "drift", "misoperation", "shutdown", "failover"}}}, &output)
	g.Expect(err).To(MatchError(errLacking), output.String())
	g.Expect(output.String()).To(MatchRegexp(`schema +passed +1 trial `))
	g.Expect(output.String()).To(MatchRegexp(`drift +passed +3 trials`))
	g.Expect(output.String()).To(MatchRegexp(`misoperation +passed +1 trial `))
	g.Expect(output.String()).To(MatchRegexp(`failover +left out +leftOut: it has no leader election`))
	g.Expect(output.String()).To(ContainSubstring("expected the operator to wait for its write in flight before it ends"))

	content, err := os.ReadFile(filepath.Join(reports, "report.json"))
	g.Expect(err).NotTo(HaveOccurred())
	var made report.Report
	g.Expect(json.Unmarshal(content, &made)).To(Succeed())
	g.Expect(made.Behaviours[1].Name).To(Equal("drift"))
	g.Expect(filepath.Join(reports, "junit.xml")).To(BeAnExistingFile())
	g.Expect(filepath.Join(reports, "report.html")).To(BeAnExistingFile())
	failed := made.Behaviours[slices.IndexFunc(made.Behaviours, func(b report.Behaviour) bool { return b.Name == "shutdown" })].Trials[0]
	g.Expect(failed.Replay).To(Equal("operatortest run -f " + example + " --seed 7 --trial " + failed.ID))
	g.Expect(failed.Logs).NotTo(BeEmpty())
	g.Expect(filepath.Join(reports, failed.Logs[0].File)).To(BeAnExistingFile())

	output.Reset()
	one := made.Behaviours[1].Trials[1].ID
	g.Expect(run(t.Context(), runOptions{file: example, Options: behaviours.Options{Trial: one}}, &output)).To(Succeed(), output.String())
	g.Expect(output.String()).To(And(MatchRegexp(`drift +passed +1 trial `), Not(ContainSubstring("schema"))))
}

func TestCommandToRunATrialAlone(t *testing.T) {
	g := NewWithT(t)
	g.Expect(runOptions{file: "operatortest.yaml"}.command()).To(Equal("operatortest run -f operatortest.yaml"))
	g.Expect(runOptions{file: "my operator's.yaml", seed: -7}.command()).To(Equal(`operatortest run -f "my operator's.yaml" --seed -7`))
}

func TestRunRefuses(t *testing.T) {
	tests := map[string]struct {
		options runOptions
		want    string
	}{
		"a file that does not exist":                 {runOptions{file: "absent.yaml"}, "there is no absent.yaml: write one, or name another file with --file"},
		"a folder for reports that can't be created": {runOptions{file: example, reports: "main_test.go/reports"}, "make the folder of --report: "},
		"a trial that does not exist": {
			runOptions{file: example, Options: behaviours.Options{Trial: "nonsense"}}, `there is no trial "nonsense": an ID consists of a behaviour and `,
		},
		"a behaviour that does not exist": {
			runOptions{file: example, Options: behaviours.Options{Only: []string{"crashes"}}}, `there is no behaviour "crashes": the behaviours are schema, converges, `,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(run(t.Context(), test.options, &bytes.Buffer{})).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

// docs/testing-your-operator.md must show the example's operatortest.yaml as it is.
func TestThePageShowsTheExamplesFile(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../../docs/testing-your-operator.md")
	g.Expect(err).NotTo(HaveOccurred())
	file, err := os.ReadFile(example)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(page)).To(ContainSubstring("```yaml\n" + string(file) + "```"))
}

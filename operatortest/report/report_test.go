package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// example returns a report with at least one behaviour for each result.
func example() *Report {
	return &Report{Seed: 7, Seconds: 12.5, Behaviours: []Behaviour{
		{Name: "converges", Promise: "gets there", Result: Passed, Trials: []Trial{{ID: "converges/sample-a", Name: "sample a", Result: Passed, Seconds: 1.25, Requests: 9, Writes: 4}}},
		{Name: "crash", Promise: "survives", Result: Failed, Failure: "behaviour \"crash\": <lost>\nmore", Advice: "look <there>", Trials: []Trial{
			{ID: "crash/1", Name: "before create", Result: Passed, Requests: 3},
			{ID: "crash/3", Name: "before patch", Result: NotTried, Remark: "nothing to disturb"},
			{ID: "crash/2", Name: "after create", Result: Failed, Failure: "expected <one>\nfound two", Replay: "retry crash/2", Requests: 5, Timeline: []Entry{
				{Seconds: 0.4, What: "kill operator 1"},
				{Operator: 1, Seconds: 0.5, What: "create secrets", Object: "a/b", Reply: "201", Injected: true},
				{Operator: 1, Seconds: 0.6, What: "ADDED secrets", Object: "a/b", Reply: "resource version 7"},
			}, Logs: []Log{{File: "logs/a.log", LastLines: "its last lines:\ngoodbye"}}},
		}},
		{Name: "collision", Promise: "reports", Result: Passed, LeftOut: map[string]string{"event": "by a condition only"}},
		{Name: "drift", Promise: "repairs", Result: NotTried, Failure: "behaviour \"drift\": not tried"},
		{Name: "failover", Promise: "hands over", Result: LeftOut, Reason: "one replica by design"},
	}}
}

func TestJUnit(t *testing.T) {
	g := NewWithT(t)
	var written bytes.Buffer
	g.Expect(example().WriteJUnit(&written)).To(Succeed())
	var read junitSuites
	g.Expect(xml.Unmarshal(written.Bytes(), &read)).To(Succeed())
	g.Expect(read.Suites).To(HaveLen(5))
	g.Expect(read.Suites[0].Cases).To(ConsistOf(And(HaveField("Name", "sample a"), HaveField("Failure", BeNil()))))
	g.Expect(read.Suites[1]).To(And(HaveField("Tests", 3), HaveField("Failures", 1)), "no extra case may be added if a trial has failed")
	g.Expect(read.Suites[1].Cases[1].Skipped.Message).To(Equal("nothing to disturb"))
	g.Expect(read.Suites[1].Cases[2].Failure).To(Equal(&junitText{Message: "expected <one>", Text: "expected <one>\nfound two"}))
	g.Expect(read.Suites[3]).To(And(HaveField("Tests", 1), HaveField("Failures", 1)), "a behaviour that was not tried must not count as passed")
	g.Expect(read.Suites[4]).To(And(HaveField("Tests", 1), HaveField("Skipped", 1), HaveField("Failures", 0)))
	g.Expect(read.Suites[4].Cases[0].Skipped.Message).To(Equal("one replica by design"))
}

func TestJSON(t *testing.T) {
	g := NewWithT(t)
	var written bytes.Buffer
	g.Expect(example().WriteJSON(&written)).To(Succeed())
	read := &Report{}
	g.Expect(json.Unmarshal(written.Bytes(), read)).To(Succeed())
	g.Expect(read).To(Equal(example()))
}

func TestHTML(t *testing.T) {
	g := NewWithT(t)
	var written bytes.Buffer
	g.Expect(example().WriteHTML(&written)).To(Succeed())
	page := written.String()
	for _, wanted := range []string{
		"expected &lt;one&gt;", "<code>retry crash/2</code>", "<td>0.500</td><td>1</td><td>create secrets</td><td>a/b</td><td>201</td>", "<td>0.400</td><td>the kit</td><td>kill operator 1</td>", "goodbye", `href="logs/a.log"`, "look &lt;there&gt;", "left out: one replica by design", "without event: by a condition only",
	} {
		g.Expect(page).To(ContainSubstring(wanted))
	}
	g.Expect(page).NotTo(ContainSubstring("&lt;lost&gt;"), "a failure that a trial shows must not be repeated")
	g.Expect(strings.Count(page, "expected &lt;one&gt;")).To(Equal(1))
	g.Expect(page).NotTo(ContainSubstring("http"), "the page must load nothing from other servers")
}

func TestFailuresAndLines(t *testing.T) {
	g := NewWithT(t)
	var written bytes.Buffer
	g.Expect(example().WriteFailures(&written)).To(Succeed())
	g.Expect(written.String()).To(And(ContainSubstring("<lost>\nmore\nto run a trial alone: retry crash/2\n"), ContainSubstring("not tried"), HaveSuffix("4 trials and 17 requests in 12 s, seed 7\n")))
	g.Expect(example().Behaviours[2].Line()).To(Equal("collision\tpassed\t0 trials\twithout event (by a condition only)"))
	g.Expect(example().Behaviours[4].Line()).To(Equal("failover\tleft out\t\tone replica by design"))
}

func TestPassed(t *testing.T) {
	g := NewWithT(t)
	for _, behaviour := range example().Behaviours {
		passed := behaviour.Result == Passed || behaviour.Result == LeftOut
		g.Expect((&Report{Behaviours: []Behaviour{behaviour}}).Passed()).To(Equal(passed), behaviour.Name)
	}
}

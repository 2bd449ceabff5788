// Package report describes what became of an operator's behaviours: for a terminal, as JSON, as JUnit's XML and as a page of HTML.
package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Result is what became of a behaviour or a trial.
type Result string

// The results.
const (
	Passed Result = "passed"
	Failed Result = "failed"
	// NotTried says that the operator lacks a behaviour that this one builds upon.
	NotTried Result = "not tried"
	// LeftOut says that a behaviour was not tried, for the reason given.
	LeftOut Result = "left out"
)

// Report is what became of all behaviours that were tried.
type Report struct {
	Began time.Time `json:"began"`
	// Seconds is how long all of it took.
	Seconds float64 `json:"seconds"`
	// Seed is what everything random was drawn from.
	Seed       int64       `json:"seed"`
	Behaviours []Behaviour `json:"behaviours"`
}

// Behaviour is what became of one behaviour.
type Behaviour struct {
	Name string `json:"name"`
	// Promise completes "the operator …".
	Promise string `json:"promise"`
	Result  Result `json:"result"`
	// Reason says why the behaviour was left out.
	Reason string `json:"reason,omitempty"`
	// LeftOut are parts of the behaviour that were left out, with the reasons.
	LeftOut map[string]string `json:"leftOut,omitempty"`
	// Failure is empty if the behaviour has passed.
	Failure string `json:"failure,omitempty"`
	// Advice says what an operator that fails most likely lacks. It is part of Failure, too.
	Advice string  `json:"advice,omitempty"`
	Trials []Trial `json:"trials,omitempty"`
}

// Shown is the failure where no trial tells it: there was nothing to try, or what the trials showed together is wrong.
func (b Behaviour) Shown() string {
	if slices.ContainsFunc(b.Trials, func(trial Trial) bool { return trial.Result == Failed }) {
		return ""
	}
	return b.Failure
}

// Trial is one experiment of a behaviour.
type Trial struct {
	// ID selects the trial, to run it again.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Result is that of the trial; it is never LeftOut.
	Result Result `json:"result"`
	// Seconds is how long the trial took, without the time that it waited for its turn.
	Seconds float64 `json:"seconds"`
	// Requests are how many requests its operators made, Writes how many of them were writes.
	Requests int `json:"requests"`
	Writes   int `json:"writes"`
	// Remark says what the trial could not try, if anything.
	Remark  string `json:"remark,omitempty"`
	Failure string `json:"failure,omitempty"`
	// Timeline are the requests of a failed trial and the watch events that reached its operators, for each operator in the order
	// of time.
	Timeline []Entry `json:"timeline,omitempty"`
	// Namespace is where a failed trial was.
	Namespace string `json:"namespace,omitempty"`
	// Logs are what the operators of a failed trial printed, if it was kept.
	Logs []Log `json:"logs,omitempty"`
}

// Log is what one operator printed.
type Log struct {
	// File has all of it, LastLines its end.
	File      string `json:"file"`
	LastLines string `json:"lastLines"`
}

// Entry is one request of a trial's operators, or one watch event that reached them.
type Entry struct {
	// Operator counts the operators of a trial from 1: after a crash there is another one.
	Operator int `json:"operator"`
	// Seconds counts from the operator's start.
	Seconds float64 `json:"seconds"`
	// What is the verb of a request, or the type of a watch event such as ADDED, and the resource. Object is what it was about, as
	// namespace/name.
	What   string `json:"what"`
	Object string `json:"object"`
	// Reply is the status of the reply, and what else became of the request; of a watch event, the object's resource version.
	Reply string `json:"reply"`
	// Injected says that the kit disturbed the request, or that it failed.
	Injected bool `json:"injected,omitempty"`
}

// Passed tells whether no behaviour has failed.
func (r *Report) Passed() bool {
	for _, behaviour := range r.Behaviours {
		if behaviour.Result == Failed || behaviour.Result == NotTried {
			return false
		}
	}
	return true
}

// WriteJSON writes all of the report.
func (r *Report) WriteJSON(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// WriteFailures writes what was expected and found where a behaviour failed, and a summary in one line.
func (r *Report) WriteFailures(to io.Writer) error {
	text := &strings.Builder{}
	trials, requests := 0, 0
	for _, behaviour := range r.Behaviours {
		if behaviour.Result == Failed || behaviour.Result == NotTried {
			fmt.Fprintf(text, "\n%s\n", behaviour.Failure)
			if i := slices.IndexFunc(behaviour.Trials, func(trial Trial) bool { return trial.Result == Failed }); i >= 0 {
				fmt.Fprintf(text, "to run a trial alone: operatortest run --trial '%s'\n", behaviour.Trials[i].ID)
			}
		}
		trials += len(behaviour.Trials)
		for _, trial := range behaviour.Trials {
			requests += trial.Requests
		}
	}
	fmt.Fprintf(text, "\n%d trials and %d requests in %.0f s, seed %d\n", trials, requests, r.Seconds, r.Seed)
	_, err := io.WriteString(to, text.String())
	return err
}

// Line is the behaviour's line in a table whose columns are separated by tabs.
func (b Behaviour) Line() string {
	switch {
	case b.Result == LeftOut:
		return fmt.Sprintf("%s\t%s\t\t%s", b.Name, b.Result, b.Reason)
	case len(b.LeftOut) > 0:
		return fmt.Sprintf("%s\t%s\t%d trials\twithout %s", b.Name, b.Result, len(b.Trials), reasons(b.LeftOut))
	}
	return fmt.Sprintf("%s\t%s\t%d trials\t", b.Name, b.Result, len(b.Trials))
}

// WriteJUnit writes the report as a test suite for each behaviour with a case for each trial, in the XML that Jenkins, GitLab and
// others read.
func (r *Report) WriteJUnit(to io.Writer) error {
	all := junitSuites{Name: "operatortest", Time: seconds(r.Seconds)}
	for _, behaviour := range r.Behaviours {
		all.Suites = append(all.Suites, behaviour.junit())
	}
	if _, err := io.WriteString(to, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(to)
	encoder.Indent("", "  ")
	return encoder.Encode(all)
}

func (b Behaviour) junit() junitSuite {
	suite := junitSuite{Name: b.Name}
	failed := false
	for _, trial := range b.Trials {
		made := junitCase{Name: trial.Name, Class: b.Name, Time: seconds(trial.Seconds)}
		if trial.Result == Failed {
			failed = true
			made.Failure = &junitText{Message: firstLine(trial.Failure), Text: trial.Failure}
		}
		suite.Cases = append(suite.Cases, made)
	}
	switch {
	case b.Result == LeftOut:
		suite.Cases = append(suite.Cases, junitCase{Name: b.Promise, Class: b.Name, Skipped: &junitText{Message: b.Reason}})
	case b.Result == NotTried || b.Result == Failed && !failed: // no trial failed: there was nothing to try, or what they showed together is wrong
		suite.Cases = append(suite.Cases, junitCase{Name: b.Promise, Class: b.Name, Failure: &junitText{Message: firstLine(b.Failure), Text: b.Failure}})
	}
	for _, made := range suite.Cases {
		suite.Tests++
		if made.Failure != nil {
			suite.Failures++
		}
		if made.Skipped != nil {
			suite.Skipped++
		}
	}
	return suite
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Name    string       `xml:"name,attr"`
	Time    seconds      `xml:"time,attr"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string     `xml:"name,attr"`
	Class   string     `xml:"classname,attr"`
	Time    seconds    `xml:"time,attr"`
	Failure *junitText `xml:"failure"`
	Skipped *junitText `xml:"skipped"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// seconds are written with milliseconds.
type seconds float64

// MarshalText implements encoding.TextMarshaler.
func (s seconds) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%.3f", float64(s)), nil }

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Table shows trials, a line each.
func Table(trials []Trial) string {
	text := &strings.Builder{}
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	for _, trial := range trials {
		name := trial.Name
		if trial.Remark != "" {
			name += " (" + trial.Remark + ")"
		}
		fmt.Fprintf(table, "%s\t%.1f s\t%d requests, %d writes\t%s\n", trial.Result, trial.Seconds, trial.Requests, trial.Writes, name)
	}
	_ = table.Flush() // a strings.Builder takes everything
	return strings.TrimRight(text.String(), "\n")
}

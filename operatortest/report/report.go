// Package report reports the result of each of an operator's behaviours: for a terminal, as JSON, as JUnit XML and as
// HTML.
package report

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Result is the result of a behaviour or a trial.
type Result string

// The results.
const (
	Passed Result = "passed"
	Failed Result = "failed"
	// NotTried means that the operator lacks a behaviour that the tested one requires, or that a behaviour or a trial
	// could prove nothing, for example because there was nothing to disturb.
	NotTried Result = "not tried"
	// LeftOut means that a behaviour was excluded beforehand, because the operator's description leaves it out or because
	// it doesn't apply to the operator; Behaviour.Reason says why. Unlike a behaviour that was not tried, one that was
	// left out doesn't count against the operator.
	LeftOut Result = "left out"
)

// Report contains the results of the selected behaviours.
type Report struct {
	Began time.Time `json:"began"`
	// Seconds is how long it took to get all the results, measured from Began.
	Seconds float64 `json:"seconds"`
	// Seed is the seed for all random choices.
	Seed       int64       `json:"seed"`
	Behaviours []Behaviour `json:"behaviours"`
}

// Behaviour is the result of one behaviour.
type Behaviour struct {
	Name string `json:"name"`
	// Promise completes "the operator …".
	Promise string `json:"promise"`
	Result  Result `json:"result"`
	// Reason says why the behaviour was left out.
	Reason string `json:"reason,omitempty"`
	// LeftOut lists the parts of the behaviour that were left out, with the reasons.
	LeftOut map[string]string `json:"leftOut,omitempty"`
	// Failure is empty if the behaviour passed or was left out.
	Failure string `json:"failure,omitempty"`
	// Advice says what an operator that fails here most likely lacks. Failure contains it, too.
	Advice string  `json:"advice,omitempty"`
	Trials []Trial `json:"trials,omitempty"`
}

// Shown returns the failure if no single trial shows it, for example because nothing could be tried, or because the
// trials' results are wrong only when taken together. Otherwise it returns "".
func (b Behaviour) Shown() string {
	if slices.ContainsFunc(b.Trials, func(trial Trial) bool { return trial.Result == Failed }) {
		return ""
	}
	return b.Failure
}

// Trial is one experiment of a behaviour.
type Trial struct {
	// ID selects the trial when it is run again.
	ID string `json:"id"`
	// Replay is the command that runs a failed trial alone.
	Replay string `json:"replay,omitempty"`
	Name   string `json:"name"`
	// Result is the trial's result; it is never LeftOut.
	Result Result `json:"result"`
	// Seconds is how long the trial took, not counting the time that it waited for its turn.
	Seconds float64 `json:"seconds"`
	// Requests is the number of requests that the trial's operators made; Writes is the number of writes among them.
	Requests int `json:"requests"`
	Writes   int `json:"writes"`
	// Remark says why the trial was not tried. For any other trial, it is a note, for example about what the trial could
	// not try, or empty.
	Remark  string `json:"remark,omitempty"`
	Failure string `json:"failure,omitempty"`
	// Timeline lists, in chronological order, what the kit did in a failed trial, the operators' requests, and the watch events
	// that reached the operators.
	Timeline []Entry `json:"timeline,omitempty"`
	// Namespace is a failed trial's namespace.
	Namespace string `json:"namespace,omitempty"`
	// Logs contains the last lines that a failed trial's operators logged or printed, as far as the kit knows them.
	Logs []Log `json:"logs,omitempty"`
}

// Log is the output of one operator.
type Log struct {
	// File is the path of the whole output, if it was kept; LastLines are its last lines.
	File      string `json:"file,omitempty"`
	LastLines string `json:"lastLines"`
}

// Entry is one line of a trial's timeline.
type Entry struct {
	// Operator is the operator's number in the trial, from 1: a trial may start several, for example a new one after it
	// has killed the first. The number is 0 for what the kit itself did.
	Operator int `json:"operator"`
	// Seconds is the time since the trial's start.
	Seconds float64 `json:"seconds"`
	// What is the verb of a request, or the type of a watch event such as ADDED, and the resource. If the kit acted, it
	// is the verb and the kind, or "start", "stop" or "kill" with the operator's number. Object is the object's
	// namespace/name.
	What   string `json:"what"`
	Object string `json:"object"`
	// Reply is the status of the reply, and whatever else happened to the request. For a watch event, it is the object's
	// resource version; for a write of the kit, it is the error or, if a patch succeeded, the patch.
	Reply string `json:"reply"`
	// Injected means that the operator got an error, or that its request ended without a reply. The cause may be the kit,
	// the API server, or the operator, which may have cancelled the request.
	Injected bool `json:"injected,omitempty"`
}

// Passed reports whether every behaviour passed or was left out.
func (r *Report) Passed() bool {
	for _, behaviour := range r.Behaviours {
		if behaviour.Result == Failed || behaviour.Result == NotTried {
			return false
		}
	}
	return true
}

// WriteFiles writes report.json, junit.xml and report.html to a folder, which it creates if necessary.
func (r *Report) WriteFiles(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the report: %w", err)
	}
	for name, write := range map[string]func(io.Writer) error{"report.json": r.WriteJSON, "junit.xml": r.WriteJUnit, "report.html": r.WriteHTML} {
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		if err := errors.Join(write(file), file.Close()); err != nil {
			return fmt.Errorf("write %s: %w", file.Name(), err)
		}
	}
	return nil
}

// WriteJSON writes the whole report.
func (r *Report) WriteJSON(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// WriteFailures writes the Failure of each behaviour that failed or was not tried, with the command that runs one of
// the behaviour's failed trials alone, if there is one. The last line is a summary.
func (r *Report) WriteFailures(to io.Writer) error {
	text := &strings.Builder{}
	trials, requests := 0, 0
	for _, behaviour := range r.Behaviours {
		if behaviour.Result == Failed || behaviour.Result == NotTried {
			fmt.Fprintf(text, "\n%s\n", behaviour.Failure)
			if i := slices.IndexFunc(behaviour.Trials, func(trial Trial) bool { return trial.Replay != "" }); i >= 0 {
				fmt.Fprintf(text, "to run a trial alone: %s\n", behaviour.Trials[i].Replay)
			}
		}
		trials += len(behaviour.Trials)
		for _, trial := range behaviour.Trials {
			requests += trial.Requests
		}
	}
	fmt.Fprintf(text, "\n%s and %s in %.0f s, seed %d\n", Count(trials, "trial"), Count(requests, "request"), r.Seconds, r.Seed)
	_, err := io.WriteString(to, text.String())
	return err
}

// Count returns a number with a noun, which is plural unless the number is 1.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Line returns the behaviour's line in a table with tab-separated columns.
func (b Behaviour) Line() string {
	switch {
	case b.Result == LeftOut:
		return fmt.Sprintf("%s\t%s\t\t%s", b.Name, b.Result, b.Reason)
	case len(b.LeftOut) > 0:
		return fmt.Sprintf("%s\t%s\t%s\twithout %s", b.Name, b.Result, Count(len(b.Trials), "trial"), reasons(b.LeftOut))
	}
	return fmt.Sprintf("%s\t%s\t%s\t", b.Name, b.Result, Count(len(b.Trials), "trial"))
}

// WriteJUnit writes the report in the XML format that Jenkins, GitLab and others read, with a test suite for each behaviour and
// a test case for each trial. A behaviour that was left out or not tried, or that failed although none of its trials
// did, gets a test case of its own.
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
		if trial.Result == NotTried {
			made.Skipped = &junitText{Message: trial.Remark}
		}
		suite.Cases = append(suite.Cases, made)
	}
	switch {
	case b.Result == LeftOut:
		suite.Cases = append(suite.Cases, junitCase{Name: b.Promise, Class: b.Name, Skipped: &junitText{Message: b.Reason}})
	case b.Result == NotTried || b.Result == Failed && !failed: // no trial failed: there was nothing to try, or the trials' results are wrong when taken together
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

// seconds is written with three decimal places.
type seconds float64

// MarshalText implements encoding.TextMarshaler.
func (s seconds) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%.3f", float64(s)), nil }

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Table shows trials, one per line.
func Table(trials []Trial) string {
	text := &strings.Builder{}
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	for _, trial := range trials {
		name := trial.Name
		if trial.Remark != "" {
			name += " (" + trial.Remark + ")"
		}
		fmt.Fprintf(table, "%s\t%.1f s\t%s, %s\t%s\n", trial.Result, trial.Seconds, Count(trial.Requests, "request"), Count(trial.Writes, "write"), name)
	}
	_ = table.Flush() // writing to a strings.Builder never fails
	return strings.TrimRight(text.String(), "\n")
}

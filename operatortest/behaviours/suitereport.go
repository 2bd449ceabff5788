package behaviours

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/report"
)

// The environment variables that DescribeOperator documents.
const (
	reportVariable = "OPERATORTEST_REPORT"
	trialVariable  = "OPERATORTEST_TRIAL"
)

// replay returns the command that runs only one trial of a suite.
func replay(id string) string {
	return trialVariable + "=" + id + " go test -ginkgo.label-filter=" + behaviourOf(id)
}

// suiteReport is the report of a Ginkgo suite about one operator.
type suiteReport struct {
	Options
	// dir is the folder for the report. It is empty if no report is written.
	dir    string
	runner *trial.Runner
	made   report.Report
}

// session returns a session that tries the operator for this report.
func (s *suiteReport) session(runner *trial.Runner) *session {
	s.runner, s.made = runner, report.Report{Began: time.Now(), Seed: randomSeed(runner.Operator)}
	runner.OnlyTrial = s.Trial
	ctx := context.Background()
	if s.dir != "" {
		ctx = trial.WithAll(ctx) // the report has all failures
	}
	return newSession(ctx, runner)
}

// skips reports whether a trial of a behaviour other than b was selected.
func (s *suiteReport) skips(b behaviour) bool { return s.Trial != "" && behaviourOf(s.Trial) != b.name }

func (s *suiteReport) add(behaviour report.Behaviour) {
	s.noteReplay(behaviour.Trials)
	s.made.Behaviours = append(s.made.Behaviours, behaviour)
}

// write writes the report, if a folder for it is given.
func (s *suiteReport) write() error {
	if s.dir == "" {
		return nil
	}
	s.made.Seconds = time.Since(s.made.Began).Seconds()
	return s.made.WriteFiles(filepath.Join(s.dir, strings.ToLower(s.runner.Sample.GetKind())))
}

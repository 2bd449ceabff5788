package behaviours

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/report"
	"example.com/operator-workshop/operatortest/testcluster"
)

// behaviourTimeout bounds each spec's wait for its behaviour. It is long, because most behaviours share the machine
// with others while they are tried.
const behaviourTimeout = 15 * time.Minute

// DescribeOperator defines a spec for each behaviour that every operator must have. Call it where Ginkgo allows a
// Describe; the suite must start the cluster in its BeforeSuite. Each spec has its behaviour's name as a label.
//
// The trials of the selected behaviours begin with the first spec and run in parallel, and each spec waits for its own.
// The trials of "growth" and "shutdown" run alone. If Ginkgo's flags select specs by anything but labels, or run specs
// in several processes, a behaviour's trials begin only with its spec.
//
// Two environment variables do what --report and --trial do for "operatortest run". With OPERATORTEST_REPORT=DIR,
// DescribeOperator writes report.json, junit.xml and report.html to a folder in DIR that has the name of the sample's
// kind, in lower case. With OPERATORTEST_TRIAL=ID, it runs only the trial that has this ID in a report.
func DescribeOperator(operator operatortest.Operator, cluster *testcluster.Cluster) {
	ginkgo.Describe("the operator", ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		var running *session
		written := &suiteReport{Options: Options{Trial: os.Getenv(trialVariable), Replay: replay}, dir: os.Getenv(reportVariable)}
		ginkgo.BeforeAll(func(ctx ginkgo.SpecContext) {
			if err := errors.Join(written.Check(), checkLeftOut(operator.LeftOut)); err != nil {
				ginkgo.Fail(err.Error())
			}
			runner, err := trial.NewRunner(ctx, operator, cluster)
			if err != nil {
				ginkgo.Fail(err.Error())
			}
			running = written.session(runner)
			running.startAll(slices.DeleteFunc(slices.Clone(behaviours), func(b behaviour) bool { return !selected(b) || written.skips(b) }))
		})
		ginkgo.AfterAll(func() {
			if running != nil {
				running.end()
				running.runner.Close()
				if err := written.write(); err != nil {
					ginkgo.Fail(err.Error())
				}
			}
		})
		for _, behaviour := range behaviours {
			ginkgo.It(behaviour.promise, ginkgo.Label(behaviour.name), func(ctx ginkgo.SpecContext) {
				if written.skips(behaviour) {
					ginkgo.Skip(trialVariable + " selects a trial of another behaviour")
				}
				made, err := running.describe(ctx, behaviour)
				if err != nil {
					ginkgo.Fail(err.Error())
				}
				written.add(made)
				if made.Result == report.LeftOut {
					ginkgo.Skip(made.Reason)
				}
				ginkgo.AddReportEntry("trials", report.Table(made.Trials), ginkgo.ReportEntryVisibilityFailureOrVerbose)
				if made.Failure != "" {
					ginkgo.Fail(made.Failure)
				}
			}, ginkgo.NodeTimeout(behaviourTimeout))
		}
	})
}

// leftOut returns why a behaviour is left out for an operator, or "" if it isn't.
func (b behaviour) leftOut(operator operatortest.Operator) string {
	if reason := operator.LeftOut[b.name]; reason != "" {
		return "Operator.LeftOut: " + reason
	}
	if b.name == leastPrivilege.name && len(operator.Roles) == 0 {
		return "Operator.Roles names no file, so the operator may do everything"
	}
	if b.needsChild && len(operator.Children) == 0 {
		return "it disturbs the operator's children, and Operator.Children declares none"
	}
	if b.name == collision.name && !slices.ContainsFunc(operator.Children, isNamed) {
		return "all children have generated names, which no other object can take"
	}
	return ""
}

func isNamed(child operatortest.Child) bool { return !child.Generated }

// checkLeftOut returns an error if a key of Operator.LeftOut names neither a behaviour nor a part of one that can be
// left out, or if the key has no reason.
func checkLeftOut(leftOut map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(leftOut)) {
		whole, part, isPart := strings.Cut(name, "/")
		known := slices.ContainsFunc(behaviours, func(b behaviour) bool { return b.name == whole })
		if isPart {
			known = name == "converges/observedGeneration" || name == trial.Claims || name == trial.Kstatus || name == trial.Resync || name == "collision/event" ||
				name == "misoperation/report" || name == "misoperation/pods" || name == "growth/memory" ||
				name == trial.AppliedEnv || name == trial.AppliedAnnotations || name == trial.AppliedSecrets ||
				whole == update.name && strings.HasPrefix(part, "spec.") || whole == leastPrivilege.name && part != "" || whole == secrets.name && part != ""
		}
		if !known {
			return fmt.Errorf("operator.LeftOut names %q, which is neither a behaviour nor a part of one that can be left out", name)
		}
		if leftOut[name] == "" {
			return fmt.Errorf("operator.LeftOut leaves out %q: give the reason, which the report shows", name)
		}
	}
	return nil
}

// selected reports whether Ginkgo's flags certainly select a behaviour's spec. If so, its trials can begin before the
// spec.
func selected(b behaviour) bool {
	suite, _ := ginkgo.GinkgoConfiguration()
	if len(suite.FocusStrings)+len(suite.SkipStrings)+len(suite.FocusFiles)+len(suite.SkipFiles) > 0 || suite.ParallelTotal > 1 {
		return false
	}
	return ginkgo.Label(b.name).MatchesLabelFilter(suite.LabelFilter)
}

// session runs behaviours in parallel.
type session struct {
	runner *trial.Runner
	ctx    context.Context
	cancel context.CancelFunc
	// others counts the behaviours in progress that need not run alone.
	others sync.WaitGroup
	// results contains channels for the outcomes of the behaviours that have been started, by name.
	results map[string]chan error
	// failed lists the behaviours that have failed or could not be tried.
	failed []string
}

// newSession returns a session that runs all trials of a behaviour and lists all failures. With the environment
// variable OPERATORTEST_FIRST_FAILURE, a failed trial ends the trials that come after it in the behaviour's list, which
// is quicker for a half-written operator. The variable has no effect if ctx comes from [trial.WithAll], as it does when
// DescribeOperator writes a report.
func newSession(ctx context.Context, runner *trial.Runner) *session {
	if os.Getenv("OPERATORTEST_FIRST_FAILURE") == "" {
		ctx = trial.WithAll(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	return &session{runner: runner, ctx: ctx, cancel: cancel, results: map[string]chan error{}}
}

// startAll starts to try behaviours: the first one, whose outcome is reported first, and then the others from the last
// to the second. Many of the later ones take longer, or kill operators in the middle of a reconcile. Such a reconcile
// may wait until its timeout for an answer that never comes; the earlier behaviours are tried in the meantime.
func (s *session) startAll(list []behaviour) {
	if len(list) > 0 {
		s.start(list[0])
	}
	for _, behaviour := range slices.Backward(list) {
		s.start(behaviour)
	}
}

// start starts to try a behaviour, unless it has been started, is left out, or must run alone. The method wait tries
// a behaviour that must run alone.
func (s *session) start(b behaviour) {
	if _, started := s.results[b.name]; started || b.alone || b.leftOut(s.runner.Operator) != "" {
		return
	}
	result := make(chan error, 1)
	s.results[b.name] = result
	s.others.Go(func() { result <- b.try(s.ctx, s.runner) })
}

// result waits for the outcome of a behaviour, and notes whether it failed. A failed behaviour counts as not tried if
// it builds on one that has failed or could not be tried.
func (s *session) result(ctx context.Context, b behaviour) error {
	err := s.wait(ctx, b)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if slices.Contains(s.failed, b.after) && !errors.Is(err, errNotTried) {
		err = fmt.Errorf("behaviour %q: %w, because it builds upon the behaviour %q, which has failed: fix that first\n%s", b.name, errNotTried, b.after, trial.Brief(err))
	}
	s.failed = append(s.failed, b.name)
	return err
}

func (s *session) wait(ctx context.Context, b behaviour) error {
	if b.alone {
		s.others.Wait()
		return b.try(ctx, s.runner)
	}
	s.start(b)
	select {
	case err := <-s.results[b.name]:
		if err == nil && b.afterAll != nil {
			s.others.Wait()
			return b.explain(b.afterAll(s.runner))
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("behaviour %q: the spec's time is up: %w", b.name, context.Cause(ctx))
	}
}

// end cancels the remaining trials, whose results no one needs any more, and waits until they have ended.
func (s *session) end() {
	s.cancel()
	s.others.Wait()
}

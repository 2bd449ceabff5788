package behaviours

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/report"
	"example.com/operator-workshop/operatortest/testcluster"
)

// schemaName is the name of the behaviour that needs no running operator.
const schemaName = "schema"

// Options say what Run tries, and how it reports.
type Options struct {
	// Only lists the names of the behaviours to try. If it is empty, all are tried.
	Only []string
	// Trial is the ID of the one trial to run, from a report, regardless of Only. If Trial is empty, all trials of the
	// selected behaviours run.
	Trial string
	// Progress is called with the result of each selected behaviour, in the order of Names. It may be nil.
	Progress func(report.Behaviour)
	// OnTrial is called when a trial begins, and when it has ended, but not for the checks of the behaviour "schema". The
	// behaviour is empty for trials whose results other trials use. Calls may be concurrent. OnTrial may be nil.
	OnTrial func(behaviour string, ended bool)
	// Words replaces Go names in the report with the user's, if the operator is not described in Go. Nil keeps Go
	// names.
	Words func(text string) string
	// Replay returns the command that runs one trial alone, for the report. It may be nil.
	Replay func(trial string) string
}

// Names returns the names of all behaviours, in the order in which a new operator should implement them.
func Names() []string {
	names := []string{schemaName}
	for _, behaviour := range behaviours {
		names = append(names, behaviour.name)
	}
	return names
}

// Check returns an error if Only or Trial names a behaviour that does not exist.
func (o Options) Check() error {
	if o.Trial != "" && !slices.Contains(Names(), behaviourOf(o.Trial)) {
		return fmt.Errorf("there is no trial %q: an ID consists of a behaviour and the trial's name, such as drift/deployment-deleted; "+
			"the report of a run contains the IDs of its trials", o.Trial)
	}
	for _, name := range o.Only {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("there is no behaviour %q: the behaviours are %s", name, strings.Join(Names(), ", "))
		}
	}
	return nil
}

// reword replaces Go names in part of the report with the user's names for them.
func (o Options) reword(behaviour *report.Behaviour) {
	if o.Words == nil {
		return
	}
	behaviour.Failure, behaviour.Reason, behaviour.Advice = o.Words(behaviour.Failure), o.Words(behaviour.Reason), o.Words(behaviour.Advice)
	for i := range behaviour.Trials {
		behaviour.Trials[i].Failure, behaviour.Trials[i].Remark = o.Words(behaviour.Trials[i].Failure), o.Words(behaviour.Trials[i].Remark)
	}
}

// noteReplay adds to each failed trial the command that runs it alone.
func (o Options) noteReplay(trials []report.Trial) {
	for i := range trials {
		if o.Replay != nil && trials[i].Result == report.Failed {
			trials[i].Replay = o.Replay(trials[i].ID)
		}
	}
}

// behaviourOf returns the behaviour in a trial's ID.
func behaviourOf(id string) string {
	behaviour, _, _ := strings.Cut(id, "/")
	return behaviour
}

// Run tests an operator without Ginkgo. An error means that the operator could not be tested; the outcomes of the
// behaviours are in the report.
func Run(ctx context.Context, operator operatortest.Operator, cluster *testcluster.Cluster, options Options) (*report.Report, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	if options.Trial != "" {
		options.Only = []string{behaviourOf(options.Trial)}
	}
	if err := checkLeftOut(operator.LeftOut); err != nil {
		if options.Words != nil {
			err = errors.New(options.Words(err.Error()))
		}
		return nil, err
	}
	selected := func(name string) bool { return len(options.Only) == 0 || slices.Contains(options.Only, name) }
	began := time.Now()
	made := &report.Report{Began: began, Seed: randomSeed(operator)}
	add := func(behaviour report.Behaviour) {
		options.reword(&behaviour)
		options.noteReplay(behaviour.Trials)
		made.Behaviours = append(made.Behaviours, behaviour)
		if options.Progress != nil {
			options.Progress(behaviour)
		}
	}
	// The runner serves webhooks, which the samples may need.
	var runner *trial.Runner
	if operator.ServesWebhooks || slices.ContainsFunc(behaviours, func(b behaviour) bool { return selected(b.name) }) {
		var err error
		if runner, err = trial.NewRunner(ctx, operator, cluster); err != nil {
			return nil, err
		}
		runner.OnlyTrial, runner.OnTrial = options.Trial, options.OnTrial
		defer runner.Close()
	}
	if selected(schemaName) {
		checked, err := checkSchema(ctx, operator, cluster, options.Trial)
		if err != nil {
			return nil, err
		}
		add(checked)
	}
	if runner != nil {
		if err := runSelected(ctx, runner, selected, add); err != nil {
			return nil, err
		}
	}
	made.Seconds = time.Since(began).Seconds()
	return made, nil
}

// runSelected tries behaviours in parallel, and reports them in order.
func runSelected(ctx context.Context, runner *trial.Runner, selected func(name string) bool, add func(report.Behaviour)) error {
	running := newSession(context.Background(), runner)
	defer running.end()
	tried := slices.DeleteFunc(slices.Clone(behaviours), func(b behaviour) bool { return !selected(b.name) })
	running.startAll(tried)
	for _, behaviour := range tried {
		made, err := running.describe(ctx, behaviour)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		add(made)
	}
	return nil
}

// describe waits for the outcome of a behaviour, and describes it. It returns an error if the selected trial does not
// exist.
func (s *session) describe(ctx context.Context, b behaviour) (report.Behaviour, error) {
	made := report.Behaviour{Name: b.name, Promise: b.promise, Result: report.Passed, LeftOut: partsLeftOut(s.runner.Operator, b)}
	if made.Reason = b.leftOut(s.runner.Operator); made.Reason != "" {
		made.Result = report.LeftOut
		return made, nil
	}
	err := s.result(ctx, b)
	switch {
	case errors.Is(err, errNotTried):
		made.Result, made.Failure = report.NotTried, err.Error()
	case err != nil:
		made.Result, made.Failure, made.Advice = report.Failed, err.Error(), b.advice
	}
	made.Trials = s.runner.Trials(b.name)
	if s.runner.OnlyTrial != "" && len(made.Trials) == 0 && err == nil {
		return made, noTrial(s.runner.OnlyTrial)
	}
	return made, nil
}

// noTrial returns the error for a trial ID that doesn't exist in the behaviour.
func noTrial(id string) error {
	return fmt.Errorf("there is no trial %q: the report of a run contains the IDs of its trials", id)
}

// partsLeftOut returns the reasons for leaving out parts of a behaviour. The keys are the parts' names without the
// behaviour and the slash. For "update", there are also keys for the changes that are not tried because of
// Operator.Fixed, and for the removals that are not tried because of Operator.Required.
func partsLeftOut(operator operatortest.Operator, b behaviour) map[string]string {
	parts := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(operator.LeftOut)) {
		if part, found := strings.CutPrefix(name, b.name+"/"); found {
			parts[part] = operator.LeftOut[name]
		}
	}
	if b.name == update.name {
		for path, reason := range operator.Fixed {
			parts["a change of "+path] = reason
		}
		for path, reason := range operator.Required {
			parts["the removal of "+path] = reason
		}
	}
	return parts
}

// checkSchema checks the definitions and the samples. If only is not empty, it runs only the check with that ID, and
// returns an error if there is none.
func checkSchema(ctx context.Context, operator operatortest.Operator, cluster *testcluster.Cluster, only string) (report.Behaviour, error) {
	made := report.Behaviour{Name: schemaName, Promise: "has valid definitions, and samples that are accepted or refused as they should be", Result: report.Passed}
	namespace, err := cluster.CreateNamespace(ctx)
	if err != nil {
		return made, err
	}
	var created []*unstructured.Unstructured
	checks := &schemaChecks{Cluster: cluster, namespace: namespace.Name, cleanUp: func(object *unstructured.Unstructured) { created = append(created, object) }}
	var failures []string
	for _, check := range checks.of(operator) {
		id := schemaName + "/" + check.Name
		if only != "" && id != only {
			continue
		}
		began := time.Now()
		err := check.try(ctx)
		for _, object := range slices.Backward(created) {
			err = errors.Join(err, testcluster.RemoveObject(ctx, cluster.Admin, object))
		}
		created = nil
		tried := report.Trial{ID: id, Name: check.Name, Result: report.Passed, Seconds: time.Since(began).Seconds()}
		if err != nil {
			tried.Result, tried.Failure = report.Failed, err.Error()
			failures = append(failures, tried.Failure)
		}
		made.Trials = append(made.Trials, tried)
	}
	if only != "" && len(made.Trials) == 0 {
		return made, noTrial(only)
	}
	if len(failures) > 0 {
		made.Result = report.Failed
		made.Failure = fmt.Sprintf("behaviour %q: the operator %s\n%s", schemaName, made.Promise, strings.Join(failures, "\n"))
	}
	return made, nil
}

package trial

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/operatortest/report"
)

// Record is what is known about a trial that has ended.
type Record struct {
	// Behaviour is the trial's behaviour. Trials whose results other trials use belong to none.
	Behaviour string
	Began     time.Time
	report.Trial
}

type (
	behaviourKey struct{}
	slotKey      struct{}
)

// WithBehaviour returns a context in which all trials except reference trials belong to a behaviour.
func WithBehaviour(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, behaviourKey{}, name)
}

func behaviourOf(ctx context.Context) string {
	behaviour, _ := ctx.Value(behaviourKey{}).(string)
	return behaviour
}

// reference marks trials whose results other trials use. Reference trials don't wait for a turn, to avoid a deadlock:
// the trials that wait for their results keep their own turns.
func reference(ctx context.Context) context.Context {
	return context.WithValue(WithBehaviour(ctx, ""), slotKey{}, true)
}

// takeTurn waits until the trial may run, and returns the context for it. A trial inside another one runs in the
// outer one's turn.
func (runner *Runner) takeTurn(ctx context.Context) (inner context.Context, done func(), err error) {
	if ctx.Value(slotKey{}) != nil {
		return ctx, func() {}, nil
	}
	if err := runner.slots.Acquire(ctx, 1); err != nil {
		return nil, nil, err
	}
	return context.WithValue(ctx, slotKey{}, true), func() { runner.slots.Release(1) }, nil
}

// id identifies a trial. Within a behaviour, the trials have different names.
func id(behaviour, name string) string {
	return behaviour + "/" + strings.Trim(noWord.ReplaceAllString(strings.ToLower(name), "-"), "-")
}

var noWord = regexp.MustCompile(`[^a-z0-9]+`)

// skips reports whether a different trial was selected. It returns false for reference trials, and for trials inside
// another one: the selected trial may need them.
func (runner *Runner) skips(ctx context.Context, name string) bool {
	return runner.OnlyTrial != "" && ctx.Value(slotKey{}) == nil && id(behaviourOf(ctx), name) != runner.OnlyTrial
}

// IsOnly reports whether the trial with that name is the only one to run.
func (runner *Runner) IsOnly(ctx context.Context, name string) bool {
	return runner.OnlyTrial != "" && id(behaviourOf(ctx), name) == runner.OnlyTrial
}

func (runner *Runner) record(ctx context.Context, name string, t *Trial, err error) {
	behaviour := behaviourOf(ctx)
	made := Record{Behaviour: behaviour, Began: t.began, Trial: report.Trial{
		ID: id(behaviour, name), Name: name, Result: report.Passed, Remark: t.Remark, Seconds: time.Since(t.began).Seconds(),
	}}
	for _, instance := range t.instances {
		requests := instance.Tap.Requests()
		made.Requests += len(requests)
		for _, request := range requests {
			if request.IsWrite() {
				made.Writes++
			}
		}
	}
	if t.NotTried != "" {
		made.Result, made.Remark = report.NotTried, t.NotTried
	}
	if err != nil {
		made.Result, made.Failure, made.Namespace = report.Failed, err.Error(), t.Namespace
		made.Timeline, made.Logs = t.timeline(), t.lastLogs()
	}
	runner.mu.Lock()
	defer runner.mu.Unlock()
	runner.records = append(runner.records, made)
}

func (t *Trial) lastLogs() []report.Log {
	var logs []report.Log
	for _, said := range t.lastLines() {
		if said != "" {
			logs = append(logs, report.Log{LastLines: said})
		}
	}
	return logs
}

// Trials returns a behaviour's trials that have ended, in the order in which they began.
func (runner *Runner) Trials(behaviour string) []report.Trial {
	runner.mu.Lock()
	records := slices.Clone(runner.records)
	runner.mu.Unlock()
	slices.SortStableFunc(records, func(a, b Record) int { return a.Began.Compare(b.Began) })
	var trials []report.Trial
	for _, record := range records {
		if record.Behaviour == behaviour {
			trials = append(trials, record.Trial)
		}
	}
	return trials
}

// Reference runs an experiment whose result other trials need.
func (runner *Runner) Reference(ctx context.Context, name string, experiment func(context.Context, *Trial) error) error {
	return runner.Try(reference(ctx), name, experiment)
}

package trial

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Record is what is known of a trial when it has ended.
type Record struct {
	// Behaviour is the one that the trial belongs to. Trials whose results several behaviours use belong to none.
	Behaviour string
	// Name says what is special about the trial.
	Name string
	// Began and Took are when the trial began and how long it took, without the time that it waited for its turn.
	Began time.Time
	Took  time.Duration
	// Requests are how many requests its operators made, Writes how many of them were writes.
	Requests, Writes int
	// Err is nil if the trial has passed.
	Err error
}

type (
	behaviourKey struct{}
	slotKey      struct{}
)

// WithBehaviour says to which behaviour the trials of a context belong.
func WithBehaviour(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, behaviourKey{}, name)
}

// reference marks trials whose results several behaviours use. They wait for no turn: others hold theirs while they wait for
// these.
func reference(ctx context.Context) context.Context {
	return context.WithValue(WithBehaviour(ctx, ""), slotKey{}, true)
}

// takeTurn waits until the trial may run, and returns the context of what it does. A trial inside another one runs in the
// turn of that.
func (runner *Runner) takeTurn(ctx context.Context) (inner context.Context, done func(), err error) {
	if ctx.Value(slotKey{}) != nil {
		return ctx, func() {}, nil
	}
	if err := runner.slots.Acquire(ctx, 1); err != nil {
		return nil, nil, err
	}
	return context.WithValue(ctx, slotKey{}, true), func() { runner.slots.Release(1) }, nil
}

// record notes what became of a trial.
func (runner *Runner) record(ctx context.Context, name string, began time.Time, t *Trial, err error) {
	behaviour, _ := ctx.Value(behaviourKey{}).(string)
	made := Record{Behaviour: behaviour, Name: name, Began: began, Took: time.Since(began), Err: err}
	for _, log := range t.Logs() {
		made.Requests += len(log)
		for _, request := range log {
			if request.IsWrite() {
				made.Writes++
			}
		}
	}
	runner.mu.Lock()
	defer runner.mu.Unlock()
	runner.records = append(runner.records, made)
}

// Records are all trials so far, in the order in which they ended.
func (runner *Runner) Records() []Record {
	runner.mu.Lock()
	defer runner.mu.Unlock()
	return slices.Clone(runner.records)
}

// Table shows the trials of a behaviour, in the order in which they began.
func Table(records []Record, behaviour string) string {
	slices.SortStableFunc(records, func(a, b Record) int { return a.Began.Compare(b.Began) })
	text := &strings.Builder{}
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	for _, record := range records {
		if record.Behaviour != behaviour {
			continue
		}
		result := "passed"
		if record.Err != nil {
			result = "failed"
		}
		fmt.Fprintf(table, "%s\t%.1f s\t%d requests, %d writes\t%s\n", result, record.Took.Seconds(), record.Requests, record.Writes, record.Name)
	}
	_ = table.Flush() // a strings.Builder takes everything
	return strings.TrimRight(text.String(), "\n")
}

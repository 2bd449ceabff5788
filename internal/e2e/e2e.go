// Package e2e tests a stage's operator from end to end. It makes a cluster for the test or uses the learner's own, runs
// the operator's own specs with the operator deployed from its image, and plays the operator's chapter.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// logsLimit bounds the collection of logs, which Ctrl-C does not cut short.
	logsLimit = 3 * time.Minute
	// downLimit bounds the removal of the cluster, even after Ctrl-C.
	downLimit = 3 * time.Minute
)

// Step is one part of a test.
type Step struct {
	// Name is the step's name in messages such as "the specs took 10 s".
	Name string
	Do   func(ctx context.Context) error
}

// Test is an end-to-end test: its steps, and what to do after them.
type Test struct {
	// Begin lists the steps that prepare the test, such as the creation of the cluster. If one of them fails, the test
	// ends without Logs and Down.
	Begin []Step
	// Steps test the operator. After one fails, the rest are skipped.
	Steps []Step
	// Logs collects information about a failure, and prints where it has stored this information.
	Logs func(ctx context.Context) error
	// Down removes the cluster that Begin has created, unless it must be kept. Once all steps of Begin have succeeded,
	// Down is called even if one of Steps fails.
	Down func(ctx context.Context) error
	// Out receives a line for each step that succeeds, and one at the end if everything does.
	Out io.Writer
}

// Run runs the steps, and then calls Down. If a step of Begin fails, Run returns its error without calling Logs or
// Down. If one of Steps fails, Run calls Logs before Down, and joins their errors with that of the step. After Ctrl-C,
// when ctx has ended, Run does not call Logs.
func (t Test) Run(ctx context.Context) error {
	began := time.Now()
	if err := t.all(ctx, t.Begin); err != nil {
		return err
	}
	err := t.all(ctx, t.Steps)
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, atTheEnd(ctx, logsLimit, t.Logs))
	}
	err = errors.Join(err, atTheEnd(ctx, downLimit, t.Down))
	if err == nil {
		fmt.Fprintf(t.Out, "Everything passed in %s.\n", seconds(began))
	}
	return err
}

func (t Test) all(ctx context.Context, steps []Step) error {
	for _, step := range steps {
		began := time.Now()
		err := step.Do(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted during %s", step.Name)
		}
		if err != nil {
			return fmt.Errorf("%s failed after %s: %w", step.Name, seconds(began), err)
		}
		fmt.Fprintf(t.Out, "--- %s took %s.\n", step.Name, seconds(began))
	}
	return nil
}

// atTheEnd calls do with a new context and time limit, because ctx may have ended.
func atTheEnd(ctx context.Context, limit time.Duration, do func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return do(limited)
}

func seconds(began time.Time) string { return fmt.Sprintf("%.0f s", time.Since(began).Seconds()) }

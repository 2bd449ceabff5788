package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"example.com/operator-workshop/internal/exercise"
)

// verifiedAtOnce is how many parts of stages are verified at the same time. Checks that need a control plane spend
// most of their time waiting.
const verifiedAtOnce = 3

// verifyExercisesCommand implements `make verify-exercises`.
func (a *app) verifyExercisesCommand() *cobra.Command {
	var again, breaks, play bool
	var steps []string
	command := &cobra.Command{
		Use:   "verify-exercises [N...]",
		Short: "Show that each step's check fails before the step is solved, and passes afterwards",
		RunE: func(cmd *cobra.Command, args []string) error {
			stages, err := a.stagesWithExercises()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				stages = slices.DeleteFunc(stages, func(stage *exercise.Stage) bool { return !slices.Contains(args, fmt.Sprint(stage.Number)) })
			}
			if err := exercise.RemoveVerified(a.repo.Root); err != nil {
				return err
			}
			if len(steps) > 0 && (len(stages) != 1 || play || breaks) {
				return errors.New("--step works only with exactly one stage, and without --play and --breaks: workshop verify-exercises 2 --step 2.9a,2.9b")
			}
			if play {
				return a.playBySection(cmd, stages)
			}
			return a.verifyExercises(cmd, stages, steps, again, breaks)
		},
	}
	command.Flags().BoolVar(&breaks, "breaks", false, "also verify the breaks that `make stage-N break` lists")
	command.Flags().BoolVar(&play, "play", false, "instead, play each chapter after each of its sections, with a copy in work/ in which the steps so far are solved")
	command.Flags().StringSliceVar(&steps, "step", nil, "check only these steps of the stage, and solve the others")
	command.Flags().BoolVar(&again, "again", false, "verify even if nothing has changed since the last success")
	return command
}

// playBySection plays each chapter up to each of its sections in turn, with the program that a learner has written by then.
func (a *app) playBySection(cmd *cobra.Command, stages []*exercise.Stage) error {
	for _, stage := range stages {
		own := stage.Copy(func(dir string, targets ...string) error { return a.makeInCopy(cmd, cmd.OutOrStdout(), dir, targets) })
		err := own.SolveBySection(func(solved, next string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "stage %d, with section %s solved:\n", stage.Number, solved)
			cluster, err := a.upToInstall(cmd)
			if err != nil {
				return err
			}
			// The garbage collector discovers kinds every 30 seconds. A CRD that is deleted and created again within
			// that time can confuse it.
			if err := cluster.Reset(cmd.Context()); err != nil {
				return err
			}
			return a.play(cmd, playOptions{quiet: true, own: own, solved: solved, before: next}, []string{stage.Chapter})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyExercises verifies the given steps, which belong to a single stage. Without steps, it verifies all stages if
// again or breaks is set, and otherwise those that have not been verified since they last changed.
func (a *app) verifyExercises(cmd *cobra.Command, stages []*exercise.Stage, steps []string, again, breaks bool) error {
	var printing sync.Mutex
	say := func(format string, args ...any) {
		printing.Lock()
		defer printing.Unlock()
		fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	}
	run := func(dir string, targets ...string) error { return a.makeInCopy(cmd, io.Discard, dir, targets) }
	var stale []*staleStage
	var parts []*part
	for _, stage := range stages {
		fingerprint, err := stage.Fingerprint(cmd.Context())
		if err != nil {
			return err
		}
		verified, err := stage.Verified(fingerprint)
		if err != nil {
			return err
		}
		if verified && !again && !breaks && len(steps) == 0 {
			say("stage %d: its %d steps are verified, and nothing has changed since", stage.Number, len(stage.Steps))
			continue
		}
		next := &staleStage{Stage: stage, fingerprint: fingerprint, parts: []*part{{stage: stage, steps: steps}}}
		if len(steps) == 0 {
			next.parts = halves(stage)
		}
		stale, parts = append(stale, next), append(parts, next.parts...)
	}
	if len(parts) > 0 {
		say("the check of each step, before and after the step is solved:")
	}
	// Start with the part that takes the longest.
	slices.SortStableFunc(parts, func(a, b *part) int { return b.cost - a.cost })
	atOnce(len(parts), func(i int) { parts[i].verify(cmd.Context(), len(steps) == 0 && !again, run, say) })
	problems := make([]error, len(stale))
	atOnce(len(stale), func(i int) {
		problems[i] = stale[i].finish(cmd.Context(), len(steps) == 0, breaks, run, say)
	})
	return errors.Join(problems...)
}

// atOnce calls do for each number from 0 to n-1, in this order. At most verifiedAtOnce calls run at the same time.
func atOnce(n int, do func(i int)) {
	var running errgroup.Group
	running.SetLimit(verifiedAtOnce)
	for i := range n {
		running.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = running.Wait() // do stores its error itself
}

// staleStage is a stage to verify.
type staleStage struct {
	*exercise.Stage
	fingerprint string
	parts       []*part
}

// part is some steps of a stage that are verified one after the other.
type part struct {
	stage *exercise.Stage
	steps []string
	// cost estimates how long the part takes, compared with other parts.
	cost int
	// verified counts the steps that were verified, not those that were only solved (see Stage.Verify).
	verified int
	err      error
}

// halves divides a stage's steps into two parts that take about the same time. If the second would be empty, halves
// returns only the first. A step whose checks run specs, which need a control plane, takes about three times as long as
// a step whose checks run none.
func halves(stage *exercise.Stage) []*part {
	total, costs := 0, make([]int, len(stage.Steps))
	for i, step := range stage.Steps {
		costs[i] = 1
		if slices.ContainsFunc(step.Checks, func(check exercise.Check) bool { return check.Specs != "" || check.Label != "" }) {
			costs[i] = 3
		}
		total += costs[i]
	}
	first, second := &part{stage: stage}, &part{stage: stage}
	for i, step := range stage.Steps {
		to := first
		if first.cost > 0 && first.cost >= total/2 {
			to = second
		}
		to.steps, to.cost = append(to.steps, step.ID), to.cost+costs[i]
	}
	if len(second.steps) == 0 {
		return []*part{first}
	}
	return []*part{first, second}
}

func (p *part) verify(ctx context.Context, remember bool, run func(dir string, targets ...string) error, say func(format string, args ...any)) {
	p.err = p.stage.Verify(ctx, p.steps, remember, run, func(step exercise.Step, failed, passed time.Duration, found string) {
		line, _, _ := strings.Cut(strings.TrimSpace(found), "\n")
		p.verified++
		say("  %-6s %5.1f s %5.1f s  %s", step.ID, failed.Seconds(), passed.Seconds(), line)
	})
}

// finish returns the parts' errors or, if there are none, says how many steps were verified. If all is true, which
// means that the parts contain all steps, it also records this success, and verifies the breaks if requested.
func (s *staleStage) finish(ctx context.Context, all, breaks bool, run func(dir string, targets ...string) error, say func(format string, args ...any)) error {
	verified := 0
	var problems []error
	for _, part := range s.parts {
		verified, problems = verified+part.verified, append(problems, part.err)
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("stage %d: %w", s.Number, err)
	}
	say("stage %d: %d of %d steps verified", s.Number, verified, len(s.Steps))
	if !all {
		return nil
	}
	if err := s.NoteVerified(s.fingerprint); err != nil || !breaks {
		return err
	}
	err := s.VerifyBreaks(ctx, run, func(broken exercise.Break, took time.Duration, found string) {
		line, _, _ := strings.Cut(strings.TrimSpace(found), "\n")
		say("  %-16s %5.1f s  %s", broken.Name, took.Seconds(), line)
	})
	if err != nil {
		return fmt.Errorf("stage %d: %w", s.Number, err)
	}
	return nil
}

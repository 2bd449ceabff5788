package main

import (
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

// verifiedAtOnce is how many stages are verified at the same time. Checks that need a cluster spend most of their time
// waiting.
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
			// Start with the stage that takes the longest.
			slices.SortStableFunc(stages, func(a, b *exercise.Stage) int { return checks(b) - checks(a) })
			if err := exercise.RemoveVerified(a.repo.Root); err != nil {
				return err
			}
			if len(steps) > 0 && (len(stages) != 1 || play || breaks) {
				return errors.New("--step works only with exactly one stage, and without --play and --breaks: workshop verify-exercises 2 --step 2.9a,2.9b")
			}
			if play {
				return a.playBySection(cmd, stages)
			}
			var printing sync.Mutex
			say := func(format string, args ...any) {
				printing.Lock()
				defer printing.Unlock()
				fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
			}
			problems := make([]error, len(stages))
			var running errgroup.Group
			running.SetLimit(verifiedAtOnce)
			for i, stage := range stages {
				running.Go(func() error {
					problems[i] = a.verifyExercises(cmd, stage, steps, again, breaks, say)
					return nil
				})
			}
			_ = running.Wait() // each function stores its error itself
			return errors.Join(problems...)
		},
	}
	command.Flags().BoolVar(&breaks, "breaks", false, "also verify the breaks that `make stage-N break` lists")
	command.Flags().BoolVar(&play, "play", false, "instead, play each chapter after each of its sections, with a copy in work/ in which the steps so far are solved")
	command.Flags().StringSliceVar(&steps, "step", nil, "check only these steps of the stage, and solve the others")
	command.Flags().BoolVar(&again, "again", false, "verify even if nothing has changed since the last success")
	return command
}

// checks estimates how long the checks of a stage's steps take, compared with other stages: a step whose checks run
// specs, which need a control plane, takes about three times as long as another.
func checks(stage *exercise.Stage) int {
	sum := 0
	for _, step := range stage.Steps {
		sum++
		if slices.ContainsFunc(step.Checks, func(check exercise.Check) bool { return check.Specs != "" || check.Label != "" }) {
			sum += 2
		}
	}
	return sum
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

func (a *app) verifyExercises(cmd *cobra.Command, stage *exercise.Stage, steps []string, again, breaks bool, say func(format string, args ...any)) error {
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
		return nil
	}
	say("stage %d: the check of each step, before and after the step is solved", stage.Number)
	begun := time.Now()
	run := func(dir string, targets ...string) error { return a.makeInCopy(cmd, io.Discard, dir, targets) }
	checked := 0
	err = stage.Verify(cmd.Context(), steps, len(steps) == 0 && !again, run, func(step exercise.Step, failed, passed time.Duration, found string) {
		line, _, _ := strings.Cut(strings.TrimSpace(found), "\n")
		checked++
		say("  %-6s %5.1f s %5.1f s  %s", step.ID, failed.Seconds(), passed.Seconds(), line)
	})
	if err != nil {
		return fmt.Errorf("stage %d: %w", stage.Number, err)
	}
	if len(steps) > 0 {
		say("stage %d: steps %s verified in %.0f s", stage.Number, strings.Join(steps, ", "), time.Since(begun).Seconds())
		return nil
	}
	say("stage %d: %d of %d steps verified in %.0f s", stage.Number, checked, len(stage.Steps), time.Since(begun).Seconds())
	if err := stage.NoteVerified(fingerprint); err != nil || !breaks {
		return err
	}
	err = stage.VerifyBreaks(cmd.Context(), func(broken exercise.Break, took time.Duration, found string) {
		line, _, _ := strings.Cut(strings.TrimSpace(found), "\n")
		say("  %-16s %5.1f s  %s", broken.Name, took.Seconds(), line)
	})
	if err != nil {
		return fmt.Errorf("stage %d: %w", stage.Number, err)
	}
	return nil
}

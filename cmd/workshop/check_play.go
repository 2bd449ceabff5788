package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/chapter/play"
	"example.com/operator-workshop/internal/exercise"
	"example.com/operator-workshop/internal/repo"
)

// validatePlay returns an error if PLAY=1 was given with anything but check alone.
func validatePlay(stage repo.Stage, verbs []string, step string) error {
	use := fmt.Sprintf("`make stage-%d check PLAY=1`", stage.Number)
	switch {
	case len(verbs) == 0:
		return fmt.Errorf("PLAY=1 works only with check: %s; `make stage-%d OWN=1` only plays the chapter with your copy", use, stage.Number)
	case len(verbs) > 1 || verbs[0] != "check":
		return fmt.Errorf("PLAY=1 works only with check, not with %s: %s", strings.Join(verbs, " "), use)
	case step != "":
		return fmt.Errorf("PLAY=1 plays all sections that are done, so it takes no STEP: %s", use)
	}
	return nil
}

// checkPlay implements `make stage-N check PLAY=1`.
func (a *app) checkPlay(cmd *cobra.Command, own *exercise.Copy) error {
	broken, _, err := own.Broken()
	if err != nil {
		return err
	}
	if broken != nil {
		return fmt.Errorf("the chapter can't be played while your copy contains the break %s: fix the break first; `make stage-%d check` shows what fails", broken.Name, own.Number)
	}
	return a.checkThen(cmd.Context(), cmd.OutOrStdout(), own, "", func() error { return a.playDone(cmd, own) })
}

// playDone plays the chapter with the learner's copy. It stops before the section of the first step that is not done. If
// a command's exit status differs from the chapter's, or the command takes too long, the check fails. Output that differs
// is only shown, because learners may choose their own words.
func (a *app) playDone(cmd *cobra.Command, own *exercise.Copy) error {
	out := cmd.OutOrStdout()
	next, err := own.Next()
	if err != nil {
		return err
	}
	var options playOptions
	options.useOwn(own, next)
	if options.solved == "" {
		fmt.Fprintln(out, "No section of the chapter is done yet, so there is nothing to play.")
		return nil
	}
	var differences []*play.Failure
	options.from = options.solved
	options.differs = func(difference *play.Failure) { differences = append(differences, difference) }
	fmt.Fprintf(out, "Playing the chapter up to section %s with your copy.\n", options.solved)
	err = a.play(cmd, options, []string{own.Chapter})
	if failure, found := errors.AsType[*play.Failure](err); found {
		found := strings.TrimPrefix(err.Error(), failure.Place+": ")
		a.printPlayed(cmd, own, failure, "with your copy, a command does not end as the chapter shows", found)
		return errNotDone
	}
	if err != nil {
		return err
	}
	if len(differences) == 0 {
		fmt.Fprintf(out, "Up to section %s, your copy does what the chapter shows.\n", options.solved)
		return nil
	}
	first := differences[0]
	found := first.Text
	if more := len(differences) - 1; more > 0 {
		found += fmt.Sprintf("\nand %d more: `make stage-%d OWN=1` shows where", more, own.Number)
	}
	a.printPlayed(cmd, own, first, "all commands end as the chapter shows, but some print something else, which is fine where the words are your own", found)
	return nil
}

// printPlayed prints what the play found in a section, in the same format as what a step's check found.
func (a *app) printPlayed(cmd *cobra.Command, own *exercise.Copy, failure *play.Failure, headline, found string) {
	out := cmd.OutOrStdout()
	var steps []string
	for _, step := range own.Steps {
		if step.Section() == failure.Step {
			steps = append(steps, step.ID+" "+step.Title)
		}
	}
	fmt.Fprintf(out, "\nSection %s of the chapter: %s\n", failure.Step, headline)
	if len(steps) > 0 {
		field(out, "steps", strings.Join(steps, "\n"))
	}
	field(out, "open", failure.Place)
	field(out, "found", found)
	field(out, "repeat", fmt.Sprintf("make stage-%d OWN=1 FROM=%s", own.Number, failure.Step))
}

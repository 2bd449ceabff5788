package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/exercise"
)

// progressCommand implements `make progress`.
func (a *app) progressCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "progress",
		Short: "Show how many steps of the exercises are done, and the next command",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stages, err := a.stagesWithExercises()
			if err != nil {
				return err
			}
			return printProgress(cmd.OutOrStdout(), stages)
		},
	}
}

// printProgress prints a bar for each stage. It suggests continuing with the stage whose copy was changed last or, if
// all its steps are done, with the next stage that has steps left.
func printProgress(out io.Writer, stages []*exercise.Stage) error {
	var commands []string // by stage, "" if all of its steps are done
	latest, at := time.Time{}, 0
	for i, stage := range stages {
		own := stage.Copy(nil)
		changed, err := own.Changed()
		if err != nil {
			return err
		}
		if changed.After(latest) {
			latest, at = changed, i
		}
		next, verb := 0, "start"
		if own.Exists() == nil {
			if next, err = own.Next(); err != nil {
				return err
			}
			verb = "check"
		}
		bar := strings.Repeat("#", next) + strings.Repeat(".", len(own.Steps)-next)
		fmt.Fprintf(out, "stage %d  %-20s %2d of %2d  %s\n", stage.Number, bar, next, len(own.Steps), strings.TrimPrefix(stage.Name, fmt.Sprintf("%d-", stage.Number)))
		command := ""
		if next < len(own.Steps) {
			command = fmt.Sprintf("make stage-%d %s", stage.Number, verb)
		}
		commands = append(commands, command)
	}
	for i := range commands {
		if command := commands[(at+i)%len(commands)]; command != "" {
			fmt.Fprintf(out, "Go on with: %s\n", command)
			return nil
		}
	}
	fmt.Fprintln(out, "All steps are done.")
	return nil
}

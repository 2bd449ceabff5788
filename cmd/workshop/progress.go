package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// progressCommand is `make progress`.
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
			goOn := ""
			for _, stage := range stages {
				own := stage.Copy(nil)
				next, verb := 0, "start"
				if own.Exists() == nil {
					if next, err = own.Next(); err != nil {
						return err
					}
					verb = "check"
				}
				bar := strings.Repeat("#", next) + strings.Repeat(".", len(own.Steps)-next)
				fmt.Fprintf(cmd.OutOrStdout(), "stage %d  %-20s %2d of %2d  %s\n", stage.Number, bar, next, len(own.Steps), strings.TrimPrefix(stage.Name, fmt.Sprintf("%d-", stage.Number)))
				if goOn == "" && next < len(own.Steps) {
					goOn = fmt.Sprintf("Go on with: make stage-%d %s", stage.Number, verb)
				}
			}
			if goOn == "" {
				goOn = "All steps are done."
			}
			fmt.Fprintln(cmd.OutOrStdout(), goOn)
			return nil
		},
	}
}

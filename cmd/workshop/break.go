package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/exercise"
	"example.com/operator-workshop/internal/repo"
)

// breakVerb is the verb of `make stage-N break NAME`.
const breakVerb = "break"

// breakCopy puts the named break into a finished copy or, without a name, lists the breaks.
func (a *app) breakCopy(cmd *cobra.Command, stage repo.Stage, names []string) error {
	exercises, err := exercise.Load(a.repo, stage)
	if err != nil {
		return err
	}
	own := exercises.Copy(nil)
	out := cmd.OutOrStdout()
	if len(names) == 0 {
		if len(exercises.Breaks) == 0 {
			return fmt.Errorf("stage %d has nothing to break", stage.Number)
		}
		fmt.Fprintln(out, "Each of these breaks one thing in your finished copy, for you to find:")
		for _, broken := range exercises.Breaks {
			fmt.Fprintf(out, "  make stage-%d break %s\n", stage.Number, broken.Name)
		}
		return nil
	}
	kept, err := own.Break(cmd.Context(), names[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Something in %s is broken now (what you had is in %s). `make stage-%d check` shows what fails: find out why, and fix it.\n", a.relative(own.Path), kept, stage.Number)
	return nil
}

// whileBroken runs a verb on a copy that contains a break.
func (a *app) whileBroken(cmd *cobra.Command, own *exercise.Copy, verb string, broken exercise.Break, kept string) error {
	out := cmd.OutOrStdout()
	switch verb {
	case "check":
		end, err := beginCheck(cmd.Context(), own)
		if err != nil {
			return err
		}
		finding, err := own.CheckBreak(cmd.Context(), broken)
		if err := errors.Join(err, end()); err != nil {
			return err
		}
		if finding == nil {
			fmt.Fprintf(out, "You have fixed it: %s passes again. `make stage-%d break` lists all breaks.\n", broken.Name, own.Number)
			return nil
		}
		fmt.Fprintf(out, "\nBroken: %s\n", broken.Name)
		printFound(out, own, finding)
		field(out, "next", fmt.Sprintf("make stage-%d check; make stage-%d hint names the file, make stage-%d diff shows the change, make stage-%d solve takes it out",
			own.Number, own.Number, own.Number, own.Number))
		return errNotDone
	case "hint":
		fmt.Fprintf(out, "The change is in %s.\n", broken.File)
		return nil
	case "diff":
		before, err := os.ReadFile(filepath.Join(kept, filepath.FromSlash(broken.File)))
		if err != nil {
			return fmt.Errorf("read the file as it was: %w", err)
		}
		equal, err := printDiff(cmd.Context(), out, own, broken.File, before, "before")
		if equal {
			fmt.Fprintf(out, "%s is as it was: `make stage-%d check`.\n", broken.File, own.Number)
		}
		return err
	default:
		name, now, err := own.Unbreak()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s is as it was before it was broken. What you had is in %s.\n", name, now)
		return nil
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/exercise"
	"example.com/operator-workshop/internal/repo"
	"example.com/operator-workshop/internal/toolchain"
)

// exerciseVerbs are the words after `make stage-N` that concern the learner's own copy of a stage.
var exerciseVerbs = []string{"start", "check", "watch", "hint", "diff", "solve", "reset", "restore", breakVerb}

// errNotDone means that a check failed: a step is unfinished, a break isn't fixed, or the chapter can't be played with
// the copy. What the check found has already been printed.
var errNotDone = errors.New("a step of the exercises is not done")

// exercise runs one of the verbs. If played is set, check also plays the chapter.
func (a *app) exercise(cmd *cobra.Command, stage repo.Stage, verb, step string, played bool) error {
	own, err := a.copyOf(cmd, stage)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if verb == "start" {
		if step != "" {
			return fmt.Errorf("start makes a copy of the whole stage and takes no STEP: `make stage-%d start`", stage.Number)
		}
		if err := own.Start(); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s is yours: %d steps, in the order of %s.\n", a.relative(own.Path), len(own.Steps), a.relative(stage.Chapter))
		return printNext(out, own)
	}
	if step == "" && verb == "reset" {
		kept, err := own.Reset()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s is a new copy. What you had is in %s.\n", a.relative(own.Path), kept)
		return printNext(out, own)
	}
	if verb == "restore" {
		return restore(out, own, step)
	}
	if verb == "check" || verb == "watch" {
		if err := own.Exists(); err != nil {
			return err
		}
		// Many checks start a control plane from bin/.
		if err := a.ensureTools(cmd.Context(), out, toolchain.Main); err != nil {
			return err
		}
	}
	if played {
		return a.checkPlay(cmd, own)
	}
	if step == "" {
		broken, kept, err := own.Broken()
		if err != nil {
			return err
		}
		if broken != nil && verb != "watch" {
			return a.whileBroken(cmd, own, verb, *broken, kept)
		}
	}
	if step == "" && verb != "check" && verb != "watch" {
		next, err := own.Next()
		if err != nil {
			return err
		}
		if next == len(own.Steps) {
			return fmt.Errorf("all steps of stage %d are done: name one with STEP=%s", stage.Number, own.Steps[0].ID)
		}
		step = own.Steps[next].ID
	}
	switch verb {
	case "check":
		return a.check(cmd.Context(), out, own, step)
	case "watch":
		return a.watch(cmd, own, step)
	case "hint":
		return printHints(out, own, step)
	case "diff":
		return a.diff(cmd.Context(), out, own, step)
	case "solve":
		return replace(out, own.Solve, step, "solved")
	default:
		return replace(out, own.Undo, step, "undone")
	}
}

// copyOf returns the learner's copy of a stage, even if the copy doesn't exist yet.
func (a *app) copyOf(cmd *cobra.Command, stage repo.Stage) (*exercise.Copy, error) {
	exercises, err := exercise.Load(a.repo, stage)
	if err != nil {
		return nil, err
	}
	own := exercises.Copy(func(dir string, targets ...string) error { return a.makeInCopy(cmd, cmd.OutOrStdout(), dir, targets) })
	if a.program != "" {
		own.Keeper = []string{a.program, keeperName}
	}
	return own, nil
}

// makeInCopy runs targets of the copy's Makefile. Their output is shown only if they fail.
func (a *app) makeInCopy(cmd *cobra.Command, out io.Writer, dir string, targets []string) error {
	if err := a.ensureTools(cmd.Context(), out, toolchain.Main); err != nil {
		return err
	}
	fmt.Fprintf(out, "$ make -C %s %s\n", a.relative(dir), strings.Join(targets, " "))
	command := exec.CommandContext(cmd.Context(), fromEnvironment("MAKE", "make"), append([]string{"--no-print-directory", "-C", dir}, targets...)...)
	command.Env = withoutJobs(append(exercise.Environment(), "PATH="+a.repo.Bin()+string(os.PathListSeparator)+os.Getenv("PATH")))
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("make -C %s %s: %w\n%s", a.relative(dir), strings.Join(targets, " "), err, bytes.TrimSpace(output))
	}
	return nil
}

// check checks the steps that are not done and then, if none is left, all steps again. If only is not empty, it checks
// just this step.
func (a *app) check(ctx context.Context, out io.Writer, own *exercise.Copy, only string) error {
	return a.checkThen(ctx, out, own, only, nil)
}

// checkThen does what check does. In addition, if play is not nil and the program compiles, checkThen calls play before
// it says which step is not done, or that all are.
func (a *app) checkThen(ctx context.Context, out io.Writer, own *exercise.Copy, only string, play func() error) (err error) {
	end, err := beginCheck(ctx, own)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	repeating, section := false, ""
	finding, err := own.Check(ctx, only, func(step exercise.Step, ran exercise.Ran, again bool) {
		word := "done"
		if again {
			word = "still done"
		}
		if again && !repeating {
			repeating = true
			fmt.Fprintln(out, "No step is left. A later step can break an earlier one, so each is checked once more, which can take some minutes.")
		}
		fmt.Fprintf(out, "%s  %s  %s (%s)\n", word, step.ID, step.Title, ran)
		section = step.Section()
	})
	if err != nil {
		return err
	}
	if play != nil && (finding == nil || !finding.Unbuilt) {
		if err := play(); err != nil {
			return err
		}
	}
	if finding == nil {
		if only != "" {
			return nil
		}
		fmt.Fprintf(out, "All %d steps of stage %d are done: you have written this stage. `make stage-%d check PLAY=1` also plays its chapter with your copy, `make stage-%d test OWN=1` runs all of its tests.\n",
			len(own.Steps), own.Number, own.Number, own.Number)
		return nil
	}
	if play == nil && section != "" && section != finding.Step.Section() && !repeating {
		fmt.Fprintf(out, "`make stage-%d check PLAY=1` also plays the chapter up to section %s with your copy.\n", own.Number, section)
	}
	printFinding(out, own, finding)
	return errNotDone
}

// beginCheck locks the copy for a check, and borrows the control plane that checks share. The function that it returns
// undoes both.
func beginCheck(ctx context.Context, own *exercise.Copy) (end func() error, err error) {
	unlock, err := own.Lock("check")
	if err != nil {
		return nil, err
	}
	giveBack, err := own.ShareControlPlane(ctx)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	return func() error { return errors.Join(giveBack(), unlock()) }, nil
}

func printFinding(out io.Writer, own *exercise.Copy, finding *exercise.Finding) {
	at := slices.IndexFunc(own.Steps, func(step exercise.Step) bool { return step.ID == finding.Step.ID })
	fmt.Fprintf(out, "\nStep %s, %d of %d: %s (about %d minutes; section %s of docs/%s.md)\n",
		finding.Step.ID, at+1, len(own.Steps), finding.Step.Title, finding.Step.Minutes, finding.Step.Section(), own.Name)
	field(out, "task", exercise.Wrapped(finding.Step.Task))
	printFound(out, own, finding)
	field(out, "next", fmt.Sprintf("make stage-%d check; make stage-%d hint gives hints, make stage-%d diff compares with the solution, make stage-%d solve takes it",
		own.Number, own.Number, own.Number, own.Number))
}

// printFound prints what a check found, and where.
func printFound(out io.Writer, own *exercise.Copy, finding *exercise.Finding) {
	if finding.Open != "" {
		field(out, "open", finding.Open)
	}
	field(out, "found", finding.Found)
	if len(finding.Missing) > 0 {
		field(out, "missing", fmt.Sprintf("%s\n`make stage-%d restore` puts back what is missing, and changes nothing else", strings.Join(finding.Missing, "\n"), own.Number))
	}
	if tip := finding.Tip(); tip != "" {
		field(out, "hint", exercise.Wrapped(tip))
	}
	if finding.Command != "" {
		field(out, "repeat", "cd work/"+filepath.Base(own.Path)+" && "+finding.Command)
	}
}

// field prints a name and, beside it, the aligned lines of a string.
func field(out io.Writer, name, text string) {
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if i > 0 {
			name = ""
		}
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  %-7s %s", name, line), " "))
	}
}

func printNext(out io.Writer, own *exercise.Copy) error {
	next, err := own.Next()
	if err != nil || next == len(own.Steps) {
		return err
	}
	step := own.Steps[next]
	fmt.Fprintf(out, "The first is step %s: %s. Read section %s of docs/%s.md, then: make stage-%d check\n", step.ID, step.Title, step.Section(), own.Name, own.Number)
	return nil
}

func printHints(out io.Writer, own *exercise.Copy, id string) error {
	step, err := own.Step(id)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Step %s: %s\n", step.ID, step.Title)
	for i, hint := range step.Hints {
		field(out, fmt.Sprintf("%d.", i+1), exercise.Wrapped(hint))
	}
	return nil
}

// restore puts back the files that the copy lacks, except tests and generated files.
func restore(out io.Writer, own *exercise.Copy, step string) error {
	if step != "" {
		return fmt.Errorf("restore puts back whatever is missing and takes no STEP: `make stage-%d restore`", own.Number)
	}
	names, err := own.Restore()
	if len(names) == 0 && err == nil {
		fmt.Fprintf(out, "Nothing to put back: no file of %s is missing, except perhaps tests or generated files.\n", "work/"+filepath.Base(own.Path))
	}
	for _, name := range names {
		fmt.Fprintf(out, "Restored %s.\n", filepath.Join("work", filepath.Base(own.Path), name))
	}
	return err
}

// replace calls do, which is Solve or Undo, and reports what it changed.
func replace(out io.Writer, do func(id string) ([]string, string, error), id, word string) error {
	files, kept, err := do(id)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		fmt.Fprintf(out, "Nothing to change: step %s is %s already.\n", id, word)
		return nil
	}
	fmt.Fprintf(out, "Step %s is %s in %s. What you had is in %s.\n", id, word, strings.Join(files, ", "), kept)
	return nil
}

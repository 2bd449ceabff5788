package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/chapter/play"
	"example.com/operator-workshop/internal/exercise"
	"example.com/operator-workshop/internal/repo"
	"example.com/operator-workshop/internal/toolchain"
)

// stageCommand implements `make stage-N` and `make stage-N VERB...`.
func (a *app) stageCommand() *cobra.Command {
	var options playOptions
	var step string
	var own, played bool
	command := &cobra.Command{
		Use:   "stage N [VERB...]",
		Short: "Play a stage's chapter, work on its exercises, or run targets of the stage's own Makefile",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			stage, err := a.repo.Stage(args[0])
			if err != nil {
				return err
			}
			if played {
				if err := validatePlay(stage, args[1:], step); err != nil {
					return err
				}
			}
			if len(args) == 1 && own {
				return a.playOwn(cmd, stage, options)
			}
			if len(args) == 1 {
				return a.play(cmd, options, []string{stage.Chapter})
			}
			if options.from != "" {
				return fmt.Errorf("FROM works only when a chapter is played: `make stage-%d FROM=%s`, without %s", stage.Number, options.from, strings.Join(args[1:], " "))
			}
			if args[1] == breakVerb && len(args) <= 3 {
				if step != "" {
					return fmt.Errorf("break changes a finished copy and takes no STEP: `make stage-%d break` lists the breaks", stage.Number)
				}
				return a.breakCopy(cmd, stage, args[2:])
			}
			if len(args) == 2 && slices.Contains(exerciseVerbs, args[1]) {
				return a.exercise(cmd, stage, args[1], step, played)
			}
			if at := slices.IndexFunc(args[1:], func(verb string) bool { return slices.Contains(exerciseVerbs, verb) }); at >= 0 {
				return fmt.Errorf("%s can't be combined with other targets: run `make stage-%d %s` alone; `make help` shows its settings",
					args[1+at], stage.Number, args[1+at])
			}
			if step != "" {
				return fmt.Errorf("STEP works only with check, watch, hint, diff, solve or reset: `make stage-%d check STEP=%s`", stage.Number, step)
			}
			if own {
				copied, err := a.ownCopy(cmd, stage)
				if err != nil {
					return err
				}
				stage.Dir = copied.Path
			}
			return a.runVerbs(cmd, stage, args[1:])
		},
	}
	options.addFrom(command)
	command.Flags().StringVar(&step, "step", "", "the step of the exercises")
	command.Flags().BoolVar(&own, "own", os.Getenv(ownVariable) != "", "use your own copy in work/ in place of the stage")
	command.Flags().BoolVar(&played, "play", false, "with check: also play the chapter with your copy, up to the last section that is done")
	return command
}

// ownVariable is the environment variable that makes the commands of a chapter use the learner's copy.
const ownVariable = "WORKSHOP_OWN"

// ownCopy returns the learner's copy of a stage. It fails if there is none.
func (a *app) ownCopy(cmd *cobra.Command, stage repo.Stage) (*exercise.Copy, error) {
	own, err := a.copyOf(cmd, stage)
	if err != nil {
		return nil, err
	}
	return own, own.Exists()
}

// playOwn plays a stage's chapter with the learner's copy. It stops before the section of the first step that is not done.
func (a *app) playOwn(cmd *cobra.Command, stage repo.Stage, options playOptions) error {
	own, err := a.ownCopy(cmd, stage)
	if err != nil {
		return err
	}
	next, err := own.Next()
	if err != nil {
		return err
	}
	options.useOwn(own, next)
	if options.before != "" {
		if options.solved == "" {
			return fmt.Errorf("no section of the chapter is done in your copy yet: continue with `make stage-%d check`", stage.Number)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Step %s of your copy is not done, so the play stops before section %s.\n", own.Steps[next].ID, options.before)
	}
	options.differs = func(difference *play.Failure) { fmt.Fprintln(cmd.OutOrStdout(), difference) }
	return a.play(cmd, options, []string{stage.Chapter})
}

// runVerbs checks that each verb is a target of the stage's Makefile, builds missing tools, brings the cluster up if a
// verb works on it, and then runs the targets.
func (a *app) runVerbs(cmd *cobra.Command, stage repo.Stage, verbs []string) error {
	if stage.Dir == "" {
		return fmt.Errorf("stage %d has only a chapter and no targets: `make stage-%d` plays it", stage.Number, stage.Number)
	}
	known, err := makeTargets(filepath.Join(stage.Dir, "Makefile"))
	if err != nil {
		return err
	}
	for _, verb := range verbs {
		if !slices.Contains(known, verb) {
			return fmt.Errorf("stage %d has no target %q: choose from %s; for your own copy: %s",
				stage.Number, verb, strings.Join(known, ", "), strings.Join(exerciseVerbs, ", "))
		}
	}
	if err := a.ensureTools(cmd.Context(), cmd.OutOrStdout(), toolchain.Main); err != nil {
		return err
	}
	if slices.ContainsFunc(verbs, func(verb string) bool { return slices.Contains(linterVerbs, verb) }) {
		if err := a.ensureTools(cmd.Context(), cmd.OutOrStdout(), "golangci-lint"); err != nil {
			return err
		}
	}
	environment, err := a.stageEnvironment(cmd, verbs)
	if err != nil {
		return err
	}
	first, last := untilCtrlC(verbs)
	if len(first) > 0 {
		if err := a.runMake(cmd, stage, environment, first); err != nil {
			return err
		}
	}
	if len(last) == 0 {
		return nil
	}
	err = a.runMake(cmd, stage, environment, last)
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// untilCtrlC splits verbs before the first one that runs a program until Ctrl-C. Ctrl-C interrupts the earlier verbs,
// but is the normal end of the later ones.
func untilCtrlC(verbs []string) (first, last []string) {
	at := slices.IndexFunc(verbs, func(verb string) bool { return verb == "run" || verb == "emulator" })
	if at < 0 {
		return verbs, nil
	}
	return verbs[:at], verbs[at:]
}

// errStopped means that Ctrl-C, or another signal that stops this program, ended make.
var errStopped = errors.New("interrupted")

// runMake runs targets of the stage's Makefile in the terminal.
func (a *app) runMake(cmd *cobra.Command, stage repo.Stage, environment, targets []string) error {
	relative, err := filepath.Rel(a.repo.Root, stage.Dir)
	if err != nil {
		return err
	}
	args := append([]string{"-C", relative}, targets...)
	fmt.Fprintf(cmd.OutOrStdout(), "$ make %s\n", strings.Join(args, " "))
	command := exec.CommandContext(cmd.Context(), fromEnvironment("MAKE", "make"), args...)
	command.Dir = a.repo.Root
	command.Env = withoutJobs(environment)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	// Don't kill make: on Ctrl-C, its programs get the signal from the terminal themselves, and make ends after them.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	err = command.Run()
	var exit *exec.ExitError
	switch {
	case cmd.Context().Err() != nil:
		return errStopped
	// make may receive Ctrl-C before this program does.
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGINT:
		return errStopped
	case exit != nil:
		return fmt.Errorf("make %s failed", strings.Join(args, " "))
	case err != nil:
		return fmt.Errorf("run make: %w", err)
	}
	return nil
}

// jobs matches make's options for parallel jobs and for its jobserver, whose file descriptors a child does not inherit.
var jobs = regexp.MustCompile(`(^| )(-j[0-9]*|--jobserver-(auth|fds)=[^ ]*)`)

// withoutJobs returns the environment without the options that let make run jobs in parallel.
func withoutJobs(environment []string) []string {
	kept := slices.Clone(environment)
	for i, entry := range kept {
		if flags, found := strings.CutPrefix(entry, "MAKEFLAGS="); found {
			options, variables, _ := strings.Cut(flags, " -- ")
			kept[i] = "MAKEFLAGS=" + jobs.ReplaceAllString(options, "")
			if variables != "" {
				kept[i] += " -- " + variables
			}
		}
	}
	return kept
}

// offlineVerbs need no classroom cluster, or find one themselves: tests start their own, and kind-load uses the kind
// cluster.
var offlineVerbs = []string{
	"help", "test", "fuzz", "fmt", "vet", "lint", "lint-fix", "lint-config", "generate", "manifests", "build",
	"docker-build", "docker-push", "docker-buildx", "kind-load", "build-installer", "bundle", "bundle-build", "bundle-push",
	"setup-test-e2e", "test-e2e", "cleanup-test-e2e", "emulator",
}

// linterVerbs need golangci-lint, which is built on demand.
var linterVerbs = []string{"lint", "lint-fix", "lint-config"}

// stageEnvironment returns the environment for verbs. For verbs that work on the cluster, such as install, it brings the
// cluster up first.
func (a *app) stageEnvironment(cmd *cobra.Command, verbs []string) ([]string, error) {
	needsCluster := slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(offlineVerbs, verb) })
	if !needsCluster {
		return append(os.Environ(), "PATH="+a.repo.Bin()+string(os.PathListSeparator)+os.Getenv("PATH")), nil
	}
	cluster, err := a.upToInstall(cmd)
	if err != nil {
		return nil, err
	}
	return a.environment(cluster), nil
}

// documentedTarget matches a line such as "install: manifests ## Install the CRDs."
var documentedTarget = regexp.MustCompile(`^([a-zA-Z0-9_-]+):[^=]*?## `)

// makeTargets lists the documented targets of a Makefile.
func makeTargets(path string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the stage's targets: %w", err)
	}
	defer file.Close()
	var targets []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if match := documentedTarget.FindStringSubmatch(lines.Text()); match != nil {
			targets = append(targets, match[1])
		}
	}
	return targets, lines.Err()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/chapter"
	"example.com/operator-workshop/internal/chapter/play"
	"example.com/operator-workshop/internal/chapter/snippet"
	"example.com/operator-workshop/internal/exercise"
	"example.com/operator-workshop/internal/kube"
	"example.com/operator-workshop/internal/pages"
	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/rollout"
)

type playOptions struct {
	quiet  bool
	step   bool
	from   string         // number of the first step to show, for a single chapter
	before string         // number of the step to stop before, for a single chapter
	own    *exercise.Copy // the learner's copy that takes the place of the stage; nil for none
	solved string         // the last section of the chapter that is done in the learner's copy
	// differs is called for each command whose output differs from the chapter. If it is nil, the play fails at the first
	// such command.
	differs func(*play.Failure)
}

// useOwn makes the play use the learner's copy, and stop before the section of the first step that is not done.
func (o *playOptions) useOwn(own *exercise.Copy, done int) {
	o.own = own
	o.solved, o.before = own.Sections(done)
}

func (o *playOptions) addFlags(command *cobra.Command) {
	command.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "show one line for each step")
	command.Flags().BoolVar(&o.step, "step", false, "wait for Enter before each command")
}

func (o *playOptions) addFrom(command *cobra.Command) {
	command.Flags().StringVar(&o.from, "from", "",
		"show the chapter from step `N.M` on; the steps before it run quietly, one line for each, so that the cluster has what later ones need")
}

func (a *app) playCommand() *cobra.Command {
	var options playOptions
	command := &cobra.Command{
		Use:   "play FILE...",
		Short: "Play chapters: run their commands and compare the output",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if options.from != "" && len(paths) > 1 {
				return errors.New("--from names a step of one chapter: give one file only")
			}
			return a.play(cmd, options, paths)
		},
	}
	options.addFlags(command)
	options.addFrom(command)
	return command
}

func (a *app) commandsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "commands FILE [SECTION]",
		Short:   "Print the commands of a page, or of one section, without prompts and outputs",
		Example: "  bin/workshop commands docs/2-clientgo-foo.md 2.9",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := a.relative(args[0])
			if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("there is no page %s: the pages are in docs/", path)
			}
			loaded, err := chapter.Load(path)
			if err != nil {
				return err
			}
			commands, err := loaded.Commands(strings.Join(args[1:], ""))
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.OutOrStdout(), commands)
			return nil
		},
	}
}

func (a *app) tourCommand() *cobra.Command {
	var options playOptions
	command := &cobra.Command{
		Use:   "tour",
		Short: "Play all chapters in order",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stages, err := a.repo.Stages()
			if err != nil {
				return err
			}
			var paths []string
			for _, stage := range stages {
				paths = append(paths, stage.Chapter)
			}
			return a.play(cmd, options, paths)
		},
	}
	options.addFlags(command)
	return command
}

// play parses all chapters before it plays the first, so that a mistake in the text is reported before a cluster
// starts.
func (a *app) play(cmd *cobra.Command, options playOptions, paths []string) error {
	var chapters []*chapter.Chapter
	for _, path := range paths {
		loaded, err := chapter.Load(a.relative(path))
		if err != nil {
			return err
		}
		if numbers := loaded.Numbers(); options.from != "" && !slices.Contains(numbers, options.from) {
			return fmt.Errorf("%s has no step %s: choose one of %s", loaded.Path, options.from, strings.Join(numbers, ", "))
		}
		if numbers := loaded.Numbers(); options.before != "" && slices.Contains(numbers, options.from) && slices.Index(numbers, options.from) >= slices.Index(numbers, options.before) {
			return fmt.Errorf("step %s can't be played with your copy yet: only the steps before %s can", options.from, options.before)
		}
		// Don't start a cluster for a single chapter that can't use it. If there are several chapters, only the blocks
		// of such a chapter are skipped.
		if len(paths) == 1 && a.provider != providers.Embedded && !loaded.PlayedOn(a.provider) {
			return fmt.Errorf("%s has no commands for CLUSTER=%s: play it without CLUSTER=, on the built-in cluster", loaded.Path, a.provider)
		}
		if options.own != nil {
			options.own.Replace(loaded, options.solved)
		}
		chapters = append(chapters, loaded)
	}
	cluster, err := a.upToInstall(cmd)
	if err != nil {
		return err
	}
	held, err := a.hold(cmd.Context(), cluster)
	if err != nil {
		return err
	}
	environment := a.chapterEnvironment(cluster, held)
	if options.own != nil {
		workspace, failed := options.own.WorkspaceInPlace()
		if failed != nil {
			return errors.Join(failed, held.End(cmd.Context()))
		}
		environment = append(environment, ownVariable+"=1", "GOWORK="+workspace)
	}
	err = a.playAll(cmd, options, chapters, environment)
	return errors.Join(err, held.End(cmd.Context()))
}

func (a *app) playAll(cmd *cobra.Command, options playOptions, chapters []*chapter.Chapter, environment []string) error {
	out := cmd.OutOrStdout()
	player := &play.Player{
		Dir: a.repo.Root, Env: environment, Out: out, Cluster: a.provider,
		Quiet: options.quiet, From: options.from, Before: options.before, Typing: isTerminal(out), Differs: options.differs,
	}
	if path, found := kubeconfigOf(environment); found {
		player.Explain = func(ctx context.Context) string { return missingImages(ctx, path) }
	}
	if options.step {
		player.In = cmd.InOrStdin()
	}
	for _, each := range chapters {
		if err := a.requireFree(cmd.Context(), environment, each); err != nil {
			return err
		}
		if err := player.Play(cmd.Context(), each); err != nil {
			return fmt.Errorf("%w\n%s", err, a.startAgain())
		}
	}
	return nil
}

// kubeconfigOf returns the last KUBECONFIG of an environment.
func kubeconfigOf(environment []string) (path string, found bool) {
	for _, entry := range environment {
		if value, is := strings.CutPrefix(entry, "KUBECONFIG="); is {
			path, found = value, true
		}
	}
	return path, found
}

// missingImages names the images that the cluster's nodes can't get. Without them, commands such as `kubectl rollout
// status` wait in silence. The result is "" if there are none, or if the cluster doesn't respond.
func missingImages(ctx context.Context, kubeconfig string) string {
	client, err := kube.Open(kubeconfig)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	missing, err := rollout.MissingImages(ctx, client.Get)
	if err != nil {
		return ""
	}
	return strings.Join(missing, "\n")
}

// startAgain returns the advice on how to restore the state in which chapters start.
func (a *app) startAgain() string {
	if a.provider == providers.Current {
		return "the commands of the chapter's last step remove what is left in your cluster"
	}
	return "`" + a.makeCommand("reset") + "` gives you an empty cluster to start again"
}

// relative returns a path for messages: relative to the working directory, if possible.
func (a *app) relative(path string) string {
	current, err := os.Getwd()
	if err == nil {
		current, err = filepath.EvalSymlinks(current) // as repo.Find does with the root
	}
	if err != nil {
		return path
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if relative, err := filepath.Rel(current, absolute); err == nil {
		return relative
	}
	return path
}

func (a *app) snippetsCommand() *cobra.Command {
	var check bool
	command := &cobra.Command{
		Use:   "snippets",
		Short: "Fill in the listings of the Markdown files from their sources, and the boxes and tables of the exercises",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			paths, err := filepath.Glob(filepath.Join(a.repo.Root, "docs", "*.md"))
			if err != nil {
				return err
			}
			if err := a.fillBoxes(cmd.OutOrStdout(), check); err != nil {
				return err
			}
			for _, path := range append(paths, filepath.Join(a.repo.Root, "README.md")) {
				if check {
					if err := snippet.Check(a.repo.Root, a.relative(path)); err != nil {
						return err
					}
					continue
				}
				changed, err := snippet.Fill(a.repo.Root, a.relative(path))
				if err != nil {
					return err
				}
				if changed {
					fmt.Fprintf(cmd.OutOrStdout(), "filled %s\n", a.relative(path))
				}
			}
			return nil
		},
	}
	command.Flags().BoolVar(&check, "check", false, "change nothing, and fail if something is out of date")
	return command
}

func (a *app) pagesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pages",
		Short: "Check the links, spelling and words of all Markdown files, and the words of comments and exercises",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			checker := pages.NewChecker(a.repo.Root)
			var problems []error
			for _, pattern := range []string{"*.md", "*/*.md"} {
				paths, err := filepath.Glob(filepath.Join(a.repo.Root, pattern))
				if err != nil {
					return err
				}
				for _, path := range paths {
					problems = append(problems, checker.Check(a.relative(path)))
				}
			}
			return errors.Join(append(problems, checker.CheckSources())...)
		},
	}
}

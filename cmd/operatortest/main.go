// Command operatortest tests an operator in any language, as a process, against a real control plane. See
// docs/testing-your-operator.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"mvdan.cc/sh/v3/syntax"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/operator-workshop/operatortest/behaviours"
	"example.com/operator-workshop/operatortest/config"
	"example.com/operator-workshop/operatortest/process"
	"example.com/operator-workshop/operatortest/report"
	"example.com/operator-workshop/operatortest/testcluster"
)

// errLacking means that the operator lacks a behaviour, or that a behaviour was not tried. The report has already named
// it.
var errLacking = errors.New("the operator lacks a behaviour, or one was not tried")

func main() {
	// Users of the command don't need the logs of the kit's own watches.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "operatortest: %v\n", err)
		os.Exit(1)
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "operatortest", Short: "Test what every Kubernetes operator must do", SilenceErrors: true, SilenceUsage: true, Args: cobra.NoArgs,
	}
	root.AddCommand(newLearnCommand(), newRunCommand(), &cobra.Command{
		Use: "behaviours", Short: "List the behaviours", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), strings.Join(behaviours.Names(), "\n"))
		},
	})
	return root
}

// runOptions are the flags of run.
type runOptions struct {
	file, reports string
	seed          int64
	parallel      uint
	behaviours.Options
}

func newRunCommand() *cobra.Command {
	var options runOptions
	command := &cobra.Command{
		Use: "run", Short: "Test the operator that operatortest.yaml describes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), options, cmd.OutOrStdout()) },
	}
	flags := command.Flags()
	flags.StringVarP(&options.file, "file", "f", "operatortest.yaml", "description of the operator")
	flags.StringSliceVar(&options.Only, "only", nil, "behaviours to test, such as crash,stale")
	flags.StringVar(&options.Trial, "trial", "", "`ID` of one trial to run again, from a report")
	flags.Int64Var(&options.seed, "seed", 0, "seed of the random specs, instead of the file's")
	flags.UintVar(&options.parallel, "parallel", 0, "how many trials may run at the same time, instead of the file's number")
	flags.StringVar(&options.reports, "report", "", "`folder` for report.json, junit.xml and report.html")
	return command
}

// command returns this run's command line, reduced to the flags that the replay of a trial also needs.
func (o runOptions) command() string {
	line := "operatortest run -f " + quoted(o.file)
	if o.seed != 0 { // the IDs of some trials differ with the seed
		line += fmt.Sprintf(" --seed %d", o.seed)
	}
	return line
}

// quoted returns an argument as it is written in a shell.
func quoted(argument string) string {
	word, err := syntax.Quote(argument, syntax.LangPOSIX)
	if err != nil {
		return argument // it has bytes that can't be written in a shell
	}
	return word
}

// logsFolder is the folder for the operators' logs inside the folder of --report, unless operatortest.yaml names
// another.
const logsFolder = "logs"

// run tests the operator, prints the progress and the results, and writes the reports if a folder is given for them.
func run(ctx context.Context, options runOptions, output io.Writer) (err error) {
	if err := options.Check(); err != nil {
		return err
	}
	logs := ""
	if options.reports != "" {
		logs = filepath.Join(options.reports, logsFolder)
	}
	operator, err := config.Load(options.file, logs)
	if err != nil {
		return err
	}
	if options.seed != 0 {
		operator.Seed = options.seed
	}
	if options.parallel != 0 {
		operator.Parallel = int(options.parallel)
	}
	if options.reports != "" { // fail now, not after minutes of trials
		if err := os.MkdirAll(options.reports, 0o755); err != nil {
			return fmt.Errorf("make the folder of --report: %w", err)
		}
	}
	cluster := &testcluster.Cluster{CRDs: operator.CRDs, Webhooks: operator.Webhooks, Converts: operator.ServesWebhooks}
	if err := cluster.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	shown := newProgress(output, isTerminal(output))
	options.Progress, options.OnTrial = shown.behaviour, shown.trial
	command := options.command()
	options.Words = config.Words(command)
	options.Replay = func(trial string) string { return command + " --trial " + quoted(trial) }
	made, err := behaviours.Run(ctx, operator, cluster, options.Options)
	shown.end()
	if err != nil {
		return err
	}
	if err := made.WriteFailures(output); err != nil {
		return err
	}
	if options.reports != "" {
		addLogs(made, options.reports)
		if err := made.WriteFiles(options.reports); err != nil {
			return err
		}
		fmt.Fprintf(output, "reports: %s\n", options.reports)
	}
	if !made.Passed() {
		return errLacking
	}
	return nil
}

// addLogs replaces the logs of each failed trial with the names and the last lines of its operators' log files, if
// there are any.
func addLogs(made *report.Report, dir string) {
	for _, behaviour := range made.Behaviours {
		for i := range behaviour.Trials {
			trial := &behaviour.Trials[i]
			if trial.Namespace == "" {
				continue
			}
			// Sorted by name, the files are in the order in which the operators were started.
			files, _ := filepath.Glob(filepath.Join(dir, logsFolder, trial.Namespace+"-*.log"))
			if len(files) > 0 {
				trial.Logs = nil // the files have more
			}
			for _, file := range files {
				trial.Logs = append(trial.Logs, report.Log{File: logsFolder + "/" + filepath.Base(file), LastLines: process.LastLinesOf(file)})
			}
		}
	}
}

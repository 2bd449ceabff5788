package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/providers"
)

// confirmCommand asks before a target of a stage's Makefile changes a cluster other than the classroom's.
func (a *app) confirmCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm",
		Short: "Ask before a cluster other than the classroom's is changed, and print the kubeconfig to use",
		Long: "confirm prints KUBECONFIG if it leads to a classroom cluster. Otherwise it shows the context and the server, asks, and\n" +
			"prints the path of a copy of KUBECONFIG: if you switch the context later, the remaining commands still use the same\n" +
			"cluster. With --yes, it doesn't ask, and if KUBECONFIG is already a copy, it prints KUBECONFIG as it is.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kubeconfig := os.Getenv("KUBECONFIG")
			agreed := a.yes && classroom.IsCopy(a.repo, kubeconfig) // the learner agreed when the chapter began
			if !agreed && !classroom.IsClassroom(a.repo, kubeconfig) {
				a.provider = providers.Current
				a.confirm = a.ask(cmd.InOrStdin(), cmd.ErrOrStderr())
				cluster, err := a.cluster(cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				if err := cluster.Up(cmd.Context()); err != nil {
					return err
				}
				kubeconfig = cluster.Kubeconfig()
			}
			if _, err := os.Stat(kubeconfig); err != nil {
				return errors.New("there is no classroom cluster: run `make up` in the repository's root, or set KUBECONFIG to the file of your cluster")
			}
			fmt.Fprintln(cmd.OutOrStdout(), kubeconfig)
			return nil
		},
	}
}

// ask returns the function that asks before the learner's own cluster is changed.
func (a *app) ask(in io.Reader, out io.Writer) func(ctx context.Context, question string) error {
	return asker{in: in, out: out, yes: a.yes}.Confirm
}

// asker asks for confirmation before a cluster that the workshop did not make is changed. It writes the question to out,
// and reads the answer from in.
type asker struct {
	in  io.Reader
	out io.Writer
	// yes answers yes to every question.
	yes bool
}

// Confirm returns an error unless the answer is yes. Ctrl-C ends the wait.
func (a asker) Confirm(ctx context.Context, question string) error {
	if a.yes {
		return nil
	}
	fmt.Fprintf(a.out, "%s Go on? [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.in).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.out)
		return fmt.Errorf("interrupted: nothing was changed")
	case given := <-answer:
		if given == "y" || given == "yes" {
			return nil
		}
		if given == "" {
			fmt.Fprintln(a.out)
		}
		return fmt.Errorf("nothing was changed: answer y, or add YES=1 to the make command where you can't answer")
	}
}

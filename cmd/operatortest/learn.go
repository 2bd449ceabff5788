package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/operatortest/learn"
)

// learnOptions are the flags and arguments of learn.
type learnOptions struct {
	file  string
	force bool
	learn.Options
}

func newLearnCommand() *cobra.Command {
	var options learnOptions
	command := &cobra.Command{
		Use:   "learn --crd FOLDER --sample FILE [--role FOLDER] -- PROGRAM [ARGUMENTS]",
		Short: "Run an operator twice, and write a draft of operatortest.yaml",
		Long: "Run an operator twice on a sample, and describe in a draft of operatortest.yaml what it did, for you to correct.\n" +
			"The program runs in the folder of that file.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 0 {
				args = nil // nothing may come before the dashes
			}
			options.Command = args
			return runLearn(cmd.Context(), options, cmd.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&options.CRDs, "crd", nil, "files and folders with the CustomResourceDefinitions")
	flags.StringVar(&options.Sample, "sample", "", "`file` with a resource whose spec the operator can fulfil")
	flags.StringSliceVar(&options.Roles, "role", nil, "files and folders with the operator's Roles and ClusterRoles; without any, it may do everything")
	flags.StringSliceVar(&options.Webhooks, "webhook", nil, "files and folders with the operator's webhook configurations; an argument of the program must contain {{.WebhookPort}}")
	flags.StringVarP(&options.file, "output", "o", "operatortest.yaml", "`file` to write")
	flags.BoolVar(&options.force, "force", false, "overwrite the file")
	flags.DurationVar(&options.Timeout, "timeout", time.Minute, "how long the operator may take to come to rest")
	return command
}

func runLearn(ctx context.Context, options learnOptions, output io.Writer) error {
	switch _, err := os.Lstat(options.file); {
	case options.force || errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("the file of -o: %w", err)
	default:
		return fmt.Errorf("%s already exists: overwrite it with --force, or name another file with -o", options.file)
	}
	options.Dir = filepath.Dir(options.file)
	if _, err := os.Stat(options.Dir); err != nil { // check this first, because running the operator takes a while
		return fmt.Errorf("the folder of -o: %w", err)
	}
	content, err := learn.Learn(ctx, options.Options)
	if err != nil {
		return err
	}
	if err := os.WriteFile(options.file, content, 0o644); err != nil {
		return fmt.Errorf("write the description: %w", err)
	}
	fmt.Fprintf(output, "wrote %s: correct it, then try the operator with: operatortest run -f %s\n", options.file, options.file)
	return nil
}

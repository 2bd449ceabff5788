package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/doctor"
	"example.com/operator-workshop/internal/keeper"
	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/quote"
	"example.com/operator-workshop/internal/subshell"
)

func (a *app) upCommand() *cobra.Command {
	var aside bool
	command := &cobra.Command{
		Use:   "up",
		Short: "Start the classroom cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			out := cmd.OutOrStdout()
			cluster, err := a.cluster(out)
			if err != nil {
				return err
			}
			up := a.upAndChoose
			if aside {
				up = a.up
			}
			if err := up(cmd.Context(), out, cluster); err != nil {
				return err
			}
			fmt.Fprintf(out, "Ready after %.1f s. Next: `%s`; or, for kubectl alone, export KUBECONFIG=%s\n", time.Since(began).Seconds(), a.makeCommand("shell"), quote.Args([]string{cluster.Kubeconfig()}))
			return nil
		},
	}
	command.Flags().IntVar(&a.port, "port", 0, "port of the API server (0: a free one)")
	command.Flags().IntVar(&a.nodes, "nodes", 0, "number of nodes (0: 3 simulated ones, 1 with kind)")
	command.Flags().BoolVar(&aside, "aside", false, "leave .workshop/kubeconfig as it is, for a cluster that is only for tests")
	return command
}

func (a *app) downCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove the classroom cluster and everything in it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := a.cluster(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			ended, err := keeper.End(cmd.Context(), a.repo.State())
			if ended {
				fmt.Fprintln(cmd.OutOrStdout(), "Ended the control plane that was kept for the next check of the exercises.")
			}
			return errors.Join(err, cluster.Down(cmd.Context()))
		},
	}
}

func (a *app) resetCommand() *cobra.Command {
	var stage string
	command := &cobra.Command{
		Use:   "reset",
		Short: "Empty the cluster, so that any chapter can start",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if stage != "" {
				if _, err := a.repo.Stage(stage); err != nil {
					return err
				}
			}
			cluster, err := a.cluster(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			if err := cluster.Reset(cmd.Context()); err != nil {
				return err
			}
			if err := cluster.Choose(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "The cluster is in its original state again.")
			return nil
		},
	}
	command.Flags().StringVar(&stage, "stage", "", "the stage you want to start (every chapter starts on an empty cluster)")
	return command
}

func (a *app) statusCommand() *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "status",
		Short: "Show the cluster's components, version, nodes, memory and kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output=%q: the only other format is json", output)
			}
			cluster, err := a.cluster(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			status, err := cluster.Status(cmd.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(status)
			}
			status.Print(cmd.OutOrStdout(), time.Now())
			return nil
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return command
}

func (a *app) shellCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "shell",
		Short: "Start a shell with the settings of kubectl and etcdctl, and bin/ on the PATH",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			cluster, err := a.cluster(out)
			if err != nil {
				return err
			}
			if err := a.upAndChoose(cmd.Context(), out, cluster); err != nil {
				return err
			}
			shell := fromEnvironment("SHELL", "/bin/sh")
			fmt.Fprintf(out, "$ %s   # `exit` brings you back\n", shell)
			command, remove := subshell.Command(shell, a.environment(cluster))
			defer remove()
			command.Dir = a.repo.Root
			command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
			if err := command.Run(); err != nil {
				// A shell exits with the status of its last command. `make shell` succeeds even if that command failed.
				if _, ok := errors.AsType[*exec.ExitError](err); !ok {
					return fmt.Errorf("start the shell %s: %w; set SHELL to another", shell, err)
				}
			}
			return nil
		},
	}
}

func (a *app) envCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: `Print the shell's settings: eval "$(bin/workshop env)"`,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := a.cluster(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			for _, setting := range append(cluster.Environment(), goSettings()...) {
				name, value, _ := strings.Cut(setting, "=")
				fmt.Fprintf(cmd.OutOrStdout(), "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
			}
			return nil
		},
	}
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check whether this machine is ready, and if not, say how to fix it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks := doctor.Examine(cmd.Context(), a.repo, a.provider == providers.Kind)
			doctor.Print(cmd.OutOrStdout(), checks)
			if !doctor.Ready(checks) {
				return fmt.Errorf("this machine is not ready: the lines marked MISSING say what to do")
			}
			fmt.Fprintln(cmd.OutOrStdout(), "\nThis machine is ready.")
			return nil
		},
	}
}

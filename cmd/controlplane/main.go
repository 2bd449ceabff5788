// Command controlplane runs a Kubernetes control plane with simulated nodes, and needs no container engine.
// See package controlplane for what it is, and docs/controlplane.md for how to use it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/controlplane/assets"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "controlplane: %v\n", err)
		os.Exit(1)
	}
}

// app holds the flags.
type app struct {
	options controlplane.Options
	user    controlplane.User
	server  string
}

func newRootCommand() *cobra.Command {
	a := &app{}
	root := &cobra.Command{
		Use:   "controlplane",
		Short: "A Kubernetes control plane with simulated nodes, without a container engine",
		Args:  cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
	}
	root.PersistentFlags().StringVar(&a.options.Assets, "assets", "", "`folder` with the programs (default: see `controlplane build`)")
	root.AddCommand(a.buildCommand(), a.upCommand(), a.kubeconfigCommand(), a.statusCommand(),
		a.simple("down DIR", "Stop a control plane and keep its data", (*controlplane.ControlPlane).Down),
		a.simple("remove DIR", "Stop a control plane and delete its data", (*controlplane.ControlPlane).Remove),
		a.simple("reset DIR", "Return a control plane to its state after the first up", (*controlplane.ControlPlane).Reset),
		a.simple("renew DIR", "Replace all certificates, so that kubeconfigs handed out before no longer work", (*controlplane.ControlPlane).RenewCertificates),
		a.fileCommand("snapshot DIR FILE", "Save a control plane's data to a file", (*controlplane.ControlPlane).Snapshot),
		a.fileCommand("restore DIR FILE", "Replace a control plane's data with a snapshot", (*controlplane.ControlPlane).Restore),
	)
	return root
}

func (a *app) open(cmd *cobra.Command, dir string) (*controlplane.ControlPlane, error) {
	a.options.Out = cmd.ErrOrStderr() // standard output contains only what scripts need
	return controlplane.Open(dir, a.options)
}

func (a *app) buildCommand() *cobra.Command {
	return &cobra.Command{
		Use: "build", Short: "Compile the programs once, with the local Go toolchain, and print their folder", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := assets.Build(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), dir)
			return nil
		},
	}
}

func (a *app) upCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "up DIR", Short: "Start a control plane that keeps its files in DIR, and print the path of the administrator's kubeconfig", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			plane, err := a.open(cmd, args[0])
			if err != nil {
				return err
			}
			if err := plane.Up(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), plane.KubeconfigPath())
			return nil
		},
	}
	flags := command.Flags()
	flags.IntVar(&a.options.Port, "port", 0, "port of the API server (0: a free one)")
	flags.IntVar(&a.options.Nodes, "nodes", 0, "number of simulated nodes of a new control plane (0: 2, -1: none)")
	flags.StringArrayVar(&a.options.Stages, "stage", nil, "`file` with objects of kwok's kind Stage (repeatable)")
	flags.StringToStringVar(&a.options.APIServerFlags, "apiserver-flag", nil, "additional kube-apiserver flag, `name=value` (repeatable)")
	return command
}

func (a *app) kubeconfigCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "kubeconfig DIR", Short: "Print a new kubeconfig for a user", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			plane, err := a.open(cmd, args[0])
			if err != nil {
				return err
			}
			content, err := plane.Kubeconfig(a.user, a.server)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(content)
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&a.user.Name, "user", "", "name of the user")
	flags.StringArrayVar(&a.user.Groups, "group", nil, "group of the user (repeatable)")
	flags.StringVar(&a.server, "server", "", "`URL` at which the user reaches the API server (default: its own)")
	return command
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status DIR", Short: "Print the state of each component, as JSON", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			plane, err := a.open(cmd, args[0])
			if err != nil {
				return err
			}
			status, err := plane.Status(cmd.Context())
			if err != nil {
				return err
			}
			encoder := json.NewEncoder(cmd.OutOrStdout())
			encoder.SetIndent("", "  ")
			return encoder.Encode(status)
		},
	}
}

// simple returns a command that calls one method. The command's argument is the control plane's folder.
func (a *app) simple(use, short string, do func(*controlplane.ControlPlane, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			plane, err := a.open(cmd, args[0])
			if err != nil {
				return err
			}
			return do(plane, cmd.Context())
		},
	}
}

func (a *app) fileCommand(use, short string, do func(*controlplane.ControlPlane, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			plane, err := a.open(cmd, args[0])
			if err != nil {
				return err
			}
			return do(plane, cmd.Context(), args[1])
		},
	}
}

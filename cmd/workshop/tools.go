package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/toolchain"
)

func (a *app) toolsCommand() *cobra.Command {
	var platformFlag string
	command := &cobra.Command{
		Use:   "tools [SET...]",
		Short: "Build the pinned tools that are missing or out of date",
		Long: "Builds into bin/ the tools that the modules in tools/ pin. Without arguments, these are the tools of tools/go.mod: the\n" +
			"control plane, kubectl, etcdctl, kind, kustomize, the generators and others. A SET is the name of a folder in tools/,\n" +
			"such as golangci-lint, prometheus-operator or sample-apiserver.",
		RunE: func(cmd *cobra.Command, sets []string) error {
			platform := toolchain.Host()
			if platformFlag != "" {
				parsed, err := toolchain.ParsePlatform(platformFlag)
				if err != nil {
					return err
				}
				platform = parsed
			}
			builder, err := a.builder(cmd.OutOrStdout(), platform)
			if err != nil {
				return err
			}
			if len(sets) == 0 {
				sets = []string{toolchain.Main}
			}
			for _, name := range sets {
				set, err := toolchain.LoadSet(cmd.Context(), a.repo.Root, name)
				if err != nil {
					return err
				}
				built, err := builder.Ensure(cmd.Context(), set)
				if err != nil {
					return err
				}
				tools := "tools"
				if len(set.Components) == 1 {
					tools = "tool"
				}
				folder := "bin/"
				if platform != toolchain.Host() {
					folder += platform.OS + "_" + platform.Arch + "/"
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s has the %d %s of %s (%d built now).\n", folder, len(set.Components), tools, name, built)
			}
			return builder.Prefetch(cmd.Context())
		},
	}
	command.Flags().StringVar(&platformFlag, "platform", "", "build for another platform, such as darwin/arm64, into bin/OS_ARCH")
	return command
}

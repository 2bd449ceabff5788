package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/kube"
	"example.com/operator-workshop/internal/rollout"
)

// defaultRolloutLimit leaves time for the first certificate, from cert-manager or from stage 5 itself.
const defaultRolloutLimit = 5 * time.Minute

// loadCommand implements `make kind-load`.
func (a *app) loadCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "load IMAGE...",
		Short: "Copy images from docker into the nodes of the kind cluster",
		RunE: func(cmd *cobra.Command, images []string) error {
			if len(images) == 0 {
				return errors.New("which image? set IMG=NAME:TAG")
			}
			cluster, err := a.cluster(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			loader, ok := cluster.(classroom.ImageLoader)
			if !ok {
				return fmt.Errorf("images can be loaded only into kind clusters, not with CLUSTER=%s: set CLUSTER=kind", a.provider)
			}
			return loader.Load(cmd.Context(), images...)
		},
	}
}

// rolloutCommand implements the waits for Deployments in the stages' `make deploy` and `make cert-manager`.
func (a *app) rolloutCommand() *cobra.Command {
	var namespace string
	var limit time.Duration
	command := &cobra.Command{
		Use:   "rollout deployment/NAME",
		Short: "Wait until all pods of a Deployment are new and ready, or say why they can't be",
		Long: "rollout waits for a Deployment in the cluster that KUBECONFIG names. It fails within seconds if one of the new pods\n" +
			"can't start, and gives the reason, such as an image that can't be pulled or a container that keeps exiting.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, found := strings.CutPrefix(args[0], "deployment/")
			if !found || name == "" {
				return fmt.Errorf("%q: write deployment/NAME", args[0])
			}
			if limit <= 0 {
				return errors.New("--timeout: choose a positive time, such as 4m")
			}
			waiter := &rollout.Waiter{Get: a.get(), Namespace: namespace, Name: name, Limit: limit, Out: cmd.OutOrStdout()}
			return waiter.Wait(cmd.Context())
		},
	}
	command.Flags().StringVarP(&namespace, "namespace", "n", "default", "namespace of the Deployment")
	command.Flags().DurationVar(&limit, "timeout", defaultRolloutLimit, "how long to wait")
	return command
}

// get returns a function that queries the cluster that KUBECONFIG names. It uses kubectl only for kubeconfigs that
// package kube can't read, because kubectl needs a process for each request.
func (a *app) get() kube.Get {
	if client, err := kube.Open(os.Getenv("KUBECONFIG")); err == nil {
		return client.Get
	}
	return func(ctx context.Context, path string) ([]byte, error) {
		out, err := a.kubectl(ctx, nil, "get", "--raw", path)
		return []byte(out), err
	}
}

// kubectl runs bin/kubectl against the cluster that the environment names. If environment is nil, that is this
// process's environment. An error contains the last line of kubectl's messages, if there are any.
func (a *app) kubectl(ctx context.Context, environment []string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(a.repo.Bin(), "kubectl"), args...)
	command.Env = environment
	out, err := command.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) && len(ended.Stderr) > 0 {
		lines := strings.Split(strings.TrimSpace(string(ended.Stderr)), "\n")
		return "", errors.New(lines[len(lines)-1])
	}
	return string(out), err
}

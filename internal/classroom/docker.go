package classroom

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// engineLimit bounds the wait for the Docker engine's first response.
const engineLimit = 20 * time.Second

// docker runs docker from the PATH and returns its output without the trailing newline.
func docker(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, "docker", args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	command.WaitDelay = time.Second
	err := command.Run()
	if ctx.Err() != nil {
		return "", contextError(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("docker %s: %s", args[0], lastLine(stderr.String(), err))
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}

// requireEngine returns an error unless a container engine responds. Unless ctx has ended, the error says what to do.
func requireEngine(ctx context.Context) error {
	const otherwise = ", or leave CLUSTER out for the built-in cluster"
	if _, err := exec.LookPath("docker"); err != nil {
		return errors.New("CLUSTER=kind needs docker, which is not on your PATH: install it" + otherwise)
	}
	limited, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	_, err := docker(limited, "version", "--format={{.Server.Version}}")
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return contextError(ctx)
	case limited.Err() != nil:
		return fmt.Errorf("CLUSTER=kind needs a Docker engine, but yours has not answered for %s: restart it%s", engineLimit, otherwise)
	case strings.Contains(strings.ToLower(err.Error()), "permission denied"):
		return fmt.Errorf("CLUSTER=kind: you may not use docker's socket: join its group with `sudo usermod -aG docker $USER` and log in again%s (%w)", otherwise, err)
	}
	return fmt.Errorf("CLUSTER=kind needs a running Docker engine: start it, for example with `sudo systemctl start docker`%s (%w)", otherwise, err)
}

// container is a node of a kind cluster.
type container struct {
	id      string
	role    string
	running bool
}

// containers lists the nodes of a kind cluster, including stopped ones.
func containers(ctx context.Context, cluster string) ([]container, error) {
	out, err := docker(ctx, "ps", "--all", "--no-trunc", "--filter=label=io.x-k8s.kind.cluster="+cluster,
		`--format={{.ID}} {{.Label "io.x-k8s.kind.role"}} {{.State}}`)
	if err != nil {
		return nil, err
	}
	var found []container
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) == 3 {
			found = append(found, container{id: fields[0], role: fields[1], running: fields[2] == "running"})
		}
	}
	return found, nil
}

// Package logs saves a cluster's objects, events and logs, so that a failure can
// be examined after the cluster is gone.
package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Collect queries the cluster, with kubectl in the given environment, and writes the answers to files in a folder:
//
//	nodes, events, leases, workloads   as kubectl shows them
//	resources/PLURAL.GROUP             the custom resources
//	pods/NAMESPACE_NAME                each pod as kubectl describes it
//	pods/NAMESPACE_NAME.log            the logs of its containers; .previous.log has those before the last restart
//
// Secrets are left out. If something can't be read, Collect returns an error, but still writes the rest.
func Collect(ctx context.Context, kubectl string, environment []string, dir string) error {
	c := collector{kubectl: kubectl, environment: environment, dir: dir}
	c.write(ctx, "nodes", "describe", "nodes")
	c.write(ctx, "events", "get", "events", "--all-namespaces", "--sort-by=.metadata.creationTimestamp")
	c.write(ctx, "leases", "get", "leases", "--all-namespaces", "--output=yaml")
	c.write(ctx, "workloads", "get", "deployments,replicasets,services,endpointslices,poddisruptionbudgets,networkpolicies", "--all-namespaces", "--output=wide")
	for kind := range strings.FieldsSeq(c.ask(ctx, "get", "customresourcedefinitions", "--output=jsonpath={.items[*].metadata.name}")) {
		c.write(ctx, filepath.Join("resources", kind), "get", kind, "--all-namespaces", "--output=yaml")
	}
	c.pods(ctx)
	return errors.Join(c.failures...)
}

type collector struct {
	kubectl     string
	environment []string
	dir         string
	failures    []error
}

func (c *collector) pods(ctx context.Context) {
	const podTemplate = "{{range .items}}{{.metadata.namespace}}/{{.metadata.name}}{{range .status.containerStatuses}}{{if .restartCount}}/restarted{{end}}{{end}} {{end}}"
	for pod := range strings.FieldsSeq(c.ask(ctx, "get", "pods", "--all-namespaces", "--output=go-template="+podTemplate)) {
		namespace, rest, _ := strings.Cut(pod, "/")
		name, restarted, _ := strings.Cut(rest, "/")
		file := filepath.Join("pods", namespace+"_"+name)
		c.write(ctx, file, "describe", "pod", name, "--namespace="+namespace)
		c.write(ctx, file+".log", "logs", name, "--namespace="+namespace, "--all-containers", "--timestamps")
		if restarted != "" {
			c.write(ctx, file+".previous.log", "logs", name, "--namespace="+namespace, "--all-containers", "--timestamps", "--previous")
		}
	}
}

// write writes what kubectl prints, including errors, to a file.
func (c *collector) write(ctx context.Context, name string, arguments ...string) {
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.failures = append(c.failures, fmt.Errorf("make a folder for logs: %w", err))
		return
	}
	output, err := c.command(ctx, arguments).CombinedOutput()
	if err != nil {
		c.failures = append(c.failures, fmt.Errorf("kubectl %s: %w", strings.Join(arguments, " "), err))
	}
	if err := os.WriteFile(path, output, 0o644); err != nil {
		c.failures = append(c.failures, fmt.Errorf("write logs: %w", err))
	}
}

func (c *collector) ask(ctx context.Context, arguments ...string) string {
	output, err := c.command(ctx, arguments).Output()
	if err != nil {
		c.failures = append(c.failures, fmt.Errorf("kubectl %s: %w", strings.Join(arguments, " "), err))
	}
	return string(output)
}

func (c *collector) command(ctx context.Context, arguments []string) *exec.Cmd {
	command := exec.CommandContext(ctx, c.kubectl, arguments...)
	command.Env = c.environment
	return command
}

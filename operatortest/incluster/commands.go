package incluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// Kubectl runs kubectl and returns what it prints. It fails the spec if the command fails.
func Kubectl(ctx context.Context, arguments ...string) string {
	ginkgo.GinkgoHelper()
	output, err := TryKubectl(ctx, arguments...)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return output
}

// TryKubectl runs a kubectl command that may fail. The error contains kubectl's message.
func TryKubectl(ctx context.Context, arguments ...string) (string, error) {
	return run(exec.CommandContext(ctx, "kubectl", arguments...))
}

// KubectlWith is like TryKubectl, but passes a manifest to kubectl. It appends --filename=- to the arguments.
func KubectlWith(ctx context.Context, manifest string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "kubectl", append(arguments, "--filename=-")...)
	command.Stdin = strings.NewReader(manifest)
	return run(command)
}

// Field returns the value of one field of an object in a namespace. path is a JSONPath in braces. Field fails the spec
// if there is no such object.
func Field(ctx context.Context, namespace, object, path string) string {
	ginkgo.GinkgoHelper()
	return Kubectl(ctx, "get", object, "--namespace="+namespace, "--output=jsonpath="+path)
}

// PodsWith returns the names of the pods that match a selector, except those that are terminating.
func PodsWith(ctx context.Context, namespace, selector string) []string {
	ginkgo.GinkgoHelper()
	return strings.Fields(Kubectl(ctx, "get", "pods", "--namespace="+namespace, "--selector="+selector,
		"--output=go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}"))
}

// Make runs a target of the project's Makefile with the tests' cluster and image, even if the tests were started
// by a make command that sets others.
func (o Operator) Make(ctx context.Context, target string) {
	ginkgo.GinkgoHelper()
	arguments := append([]string{target, "KUBECONFIG=" + os.Getenv("KUBECONFIG"), "IMG=" + os.Getenv("IMG")}, o.Variables...)
	_, err := run(exec.CommandContext(ctx, "make", arguments...))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
}

// run returns what a command prints on its standard output.
func run(command *exec.Cmd) (string, error) {
	line := strings.Join(command.Args, " ")
	fmt.Fprintf(ginkgo.GinkgoWriter, "$ %s\n", line)
	output, err := command.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(output), fmt.Errorf("run %q: %s: %s", line, failed.ProcessState, failed.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("run %q: %w", line, err)
	}
	return string(output), nil
}

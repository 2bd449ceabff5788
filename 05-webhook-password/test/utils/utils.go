// Package utils runs the commands of the e2e tests.
package utils

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/onsi/ginkgo/v2"
)

// Run runs a command and returns what it printed. If the command fails, the error has what it
// printed as an error.
func Run(cmd *exec.Cmd) (string, error) {
	line := strings.Join(cmd.Args, " ")
	fmt.Fprintf(ginkgo.GinkgoWriter, "$ %s\n", line)
	output, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(output), fmt.Errorf("run %q: %w: %s", line, err, failed.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("run %q: %w", line, err)
	}
	return string(output), nil
}

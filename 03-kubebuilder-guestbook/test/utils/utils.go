// Package utils runs commands for the end-to-end tests. `kubebuilder init` generates a package of
// this name with a function Run, which is called by the tests that `kubebuilder create webhook` adds.
package utils

import (
	"fmt"
	"os/exec"
)

// Run runs a command, and returns what it prints. If the command fails, the error contains that, too.
func Run(command *exec.Cmd) (string, error) {
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("run %q: %w: %s", command, err, output)
	}
	return string(output), nil
}

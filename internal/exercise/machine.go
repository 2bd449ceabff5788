package exercise

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"example.com/operator-workshop/internal/private"
)

var (
	diskFull    = regexp.MustCompile(`(?m)^(.*?):? *(no space left on device|disk quota exceeded)`)
	fileLimit   = regexp.MustCompile(`(?m)^.*too many open files`)
	toolMissing = regexp.MustCompile("(?m)^.* is missing: (run `make tools`|point KUBEBUILDER_ASSETS to ).*$")
)

// blameMachine returns an error if a command's output shows that the machine, not the learner's code, made it fail.
func blameMachine(output string) error {
	if full := diskFull.FindStringSubmatch(output); full != nil {
		return private.Explain(fmt.Errorf("%s: %w", strings.TrimSpace(full[1]), syscall.ENOSPC))
	}
	if line := fileLimit.FindString(output); line != "" {
		return fmt.Errorf("%s: the system limits how many files your programs may open and watch; remove each cluster that you don't need with `make down NAME=…`, or see \"too many open files\" in docs/troubleshooting.md", strings.TrimSpace(line))
	}
	if line := toolMissing.FindString(output); line != "" {
		return fmt.Errorf("the tests can't start a control plane: %s", strings.TrimSpace(line))
	}
	return nil
}

// replaceFile replaces a file atomically, so a full disk leaves the old one intact. Until the new file is complete, its
// name begins with a dot, so that neither go nor `make stage-N watch` reads it.
func replaceFile(path string, content []byte, mode fs.FileMode) error {
	partial := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".partial")
	if err := os.WriteFile(partial, content, mode); err != nil {
		_ = os.Remove(partial)
		return private.Explain(err)
	}
	return private.Explain(os.Rename(partial, path))
}

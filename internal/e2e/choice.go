package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Aside calls a function that makes a cluster, and takes back that the link to the kubeconfig of the cluster
// in use leads to the new one: a cluster for a test must not become the one that a learner works with.
func Aside(link string, makeCluster func() error) error {
	before, err := os.Readlink(link)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look which cluster is in use: %w", err)
	}
	made := makeCluster()
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(made, fmt.Errorf("choose the cluster that was in use: %w", err))
	}
	if before == "" {
		return made
	}
	return errors.Join(made, os.Symlink(before, link))
}

package classroom

import (
	"fmt"
	"os"
	"path/filepath"
)

// chooseKubeconfig makes .workshop/kubeconfig lead to the cluster brought up
// last: a fixed path for editors, for the stages' Makefiles and for shells.
func chooseKubeconfig(state, kubeconfig string) error {
	link := filepath.Join(state, "kubeconfig")
	target := filepath.Base(kubeconfig)
	if current, err := os.Readlink(link); err == nil && current == target {
		return nil
	}
	fresh := fmt.Sprintf("%s.%d", link, os.Getpid())
	_ = os.Remove(fresh)
	if err := os.Symlink(target, fresh); err != nil {
		return explainWrite(err)
	}
	return os.Rename(fresh, link)
}

// unchoose removes .workshop/kubeconfig if it leads to this cluster.
func unchoose(state, kubeconfig string) {
	link := filepath.Join(state, "kubeconfig")
	if target, err := os.Readlink(link); err == nil && target == filepath.Base(kubeconfig) {
		_ = os.Remove(link)
	}
}

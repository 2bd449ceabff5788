package operatortest

import (
	"fmt"
	"os"
	"path/filepath"

	"example.com/operator-workshop/internal/repo"
)

// assetsVariable is envtest's variable for the folder of the control plane's programs.
const assetsVariable = "KUBEBUILDER_ASSETS"

// programs are what a cluster is made of, and kubectl, which tests call.
var programs = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl"}

// findAssets returns the folder that holds the programs, and an error of one
// line that names the first missing program and the command that builds it.
func findAssets() (string, error) {
	if dir := os.Getenv(assetsVariable); dir != "" {
		remedy := fmt.Sprintf("point %s to a folder that has it, or unset it and run `make tools` in the repository's root", assetsVariable)
		return dir, checkAssets(dir, remedy)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the control plane's programs: %w", err)
	}
	checkout, err := repo.Find(dir)
	if err != nil {
		return "", fmt.Errorf("find the control plane's programs: %w, or set %s to the folder that holds them", err, assetsVariable)
	}
	return checkout.Bin(), checkAssets(checkout.Bin(), fmt.Sprintf("run `make tools` in %s", checkout.Root))
}

func checkAssets(dir, remedy string) error {
	for _, program := range programs {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			return fmt.Errorf("%s is missing: %s", path, remedy)
		}
	}
	return nil
}

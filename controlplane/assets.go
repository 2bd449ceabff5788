package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"example.com/operator-workshop/controlplane/pins"
	"example.com/operator-workshop/internal/repo"
)

// AssetsVariable is the environment variable that names the folder with the control plane's programs. envtest reads the
// same variable.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// Programs returns the programs that FindAssets looks for: the components, etcd's tools for snapshots, and kubectl.
func Programs() []string { return append(slices.Clone(Components), "etcdctl", "etcdutl", "kubectl") }

// FindAssets returns the folder with the control plane's programs. If KUBEBUILDER_ASSETS is set, it names the folder.
// Otherwise the folder is bin/ of the workshop's checkout that contains the working directory or, outside a checkout,
// the one that package assets fills. If programs are missing, the error names the first one, and says what to do.
func FindAssets() (string, error) {
	dir, remedy, err := locateAssets("")
	if err != nil {
		return "", err
	}
	return dir, checkAssets(dir, remedy)
}

// CheckAssets returns an error if a folder lacks one of the control plane's programs.
func CheckAssets(dir string) error {
	_, remedy, _ := locateAssets(dir)
	return checkAssets(dir, remedy)
}

// locateAssets returns the folder with the programs, and what to do if one of them is missing.
func locateAssets(chosen string) (dir, remedy string, err error) {
	if chosen != "" {
		dir, err := filepath.Abs(chosen)
		return dir, "run `make tools` in the workshop's root, or choose a folder that has it", err
	}
	if dir := os.Getenv(AssetsVariable); dir != "" {
		return dir, fmt.Sprintf("point %s to a folder that has it, or unset it", AssetsVariable), nil
	}
	if dir, err = os.Getwd(); err != nil {
		return "", "", fmt.Errorf("find the control plane's programs: %w", err)
	}
	if checkout, err := repo.Find(dir); err == nil {
		return checkout.Bin(), "run `make tools` in " + checkout.Root, nil
	}
	if dir, err = pins.Dir(); err != nil {
		return "", "", fmt.Errorf("find the control plane's programs: %w", err)
	}
	return filepath.Join(dir, "bin"), fmt.Sprintf("build it with `go run %s build`, or set %s to a folder that has it", commandPath, AssetsVariable), nil
}

// commandPath is the import path of the command that builds the programs.
const commandPath = "example.com/operator-workshop/cmd/controlplane"

func checkAssets(dir, remedy string) error {
	for _, program := range Programs() {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			return fmt.Errorf("%s is missing: %s", path, remedy)
		}
	}
	return nil
}

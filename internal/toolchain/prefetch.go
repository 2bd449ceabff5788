package toolchain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"example.com/operator-workshop/internal/procgroup"
)

// Prefetch downloads the modules that the checkout's own code and tests need, so that they can be built offline once
// the tools are built. It downloads again after a go.mod or go.sum has changed.
func (b Builder) Prefetch(ctx context.Context) error {
	modules, err := b.workspaceModules()
	if err != nil {
		return err
	}
	stamp := filepath.Join(b.bin(), ".modules")
	key, err := modulesKey(b.Root, modules)
	if err != nil {
		return err
	}
	if content, err := os.ReadFile(stamp); err == nil && string(content) == key {
		return nil
	}
	fmt.Fprintln(b.Out, "Downloading the modules that the stages and their tests need.")
	for _, module := range modules {
		// A module may need other versions outside the workspace than in it.
		for _, workspace := range []string{"GOWORK=off", "GOWORK="} {
			if err := download(ctx, module, workspace); err != nil {
				return fmt.Errorf("download the modules of %s: %w", relative(b.Root, module), err)
			}
		}
	}
	return os.WriteFile(stamp, []byte(key), 0o644)
}

// download makes the go command fetch the modules of all packages that the module and its tests are built from.
func download(ctx context.Context, module, workspace string) error {
	var output bytes.Buffer
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "./...")
	command.Dir = module
	command.Env = append(os.Environ(), workspace, "GOFLAGS=-buildvcs=false", "GOOS="+Host().OS, "GOARCH="+Host().Arch)
	command.Stderr = &output
	if err := procgroup.Run(command, goGrace); err != nil {
		return explain(err, output.Bytes())
	}
	return nil
}

// workspaceModules returns the folders that go.work uses: the root and the stages.
func (b Builder) workspaceModules() ([]string, error) {
	stages, err := filepath.Glob(filepath.Join(b.Root, "[0-9][0-9]-*", "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("list the stages: %w", err)
	}
	modules := []string{b.Root}
	for _, stage := range stages {
		modules = append(modules, filepath.Dir(stage))
	}
	return modules, nil
}

// modulesKey returns a key that depends on the pinned versions, but not on where the checkout is.
func modulesKey(root string, modules []string) (string, error) {
	hash := sha256.New()
	for _, module := range modules {
		for _, name := range []string{"go.mod", "go.sum"} {
			content, err := os.ReadFile(filepath.Join(module, name))
			if err != nil {
				return "", fmt.Errorf("read the pinned versions of a module: %w", err)
			}
			fmt.Fprintf(hash, "%s %d\n%s\n", filepath.Join(relative(root, module), name), len(content), content)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Package assets builds the programs of control planes for use outside a checkout of the workshop. A checkout has them in
// bin/.
package assets

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/controlplane/pins"
	"example.com/operator-workshop/internal/toolchain"
)

// Build compiles the programs with the local Go toolchain and returns their folder. From then on,
// controlplane.FindAssets returns the same folder outside a checkout, unless KUBEBUILDER_ASSETS is set. The first call
// downloads the pinned modules, verifies their checksums, and takes several minutes. Later calls find the programs
// already built. Progress is written to out.
func Build(ctx context.Context, out io.Writer) (string, error) {
	dir, err := pins.Dir()
	if err != nil {
		return "", err
	}
	module := filepath.Join(dir, "tools")
	if err := os.MkdirAll(module, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of the control plane's programs: %w", err)
	}
	for name, content := range map[string][]byte{"go.mod": pins.Modules, "go.sum": pins.Sums} {
		// Two concurrent builds write the same content.
		if err := os.WriteFile(filepath.Join(module, name), content, 0o644); err != nil {
			return "", fmt.Errorf("write the pinned modules: %w", err)
		}
	}
	set, err := toolchain.LoadSet(ctx, dir, toolchain.Main)
	if err != nil {
		return "", err
	}
	wanted := controlplane.Programs()
	set.Components = slices.DeleteFunc(set.Components, func(c toolchain.Component) bool { return !slices.Contains(wanted, c.Name) })
	builder := toolchain.Builder{Root: dir, Cache: filepath.Dir(dir), Platform: toolchain.Host(), Out: out}
	_, err = builder.Ensure(ctx, set)
	return filepath.Join(dir, "bin"), err
}

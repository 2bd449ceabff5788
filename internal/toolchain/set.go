// Package toolchain builds the workshop's tools, including the control plane,
// from the Go modules pinned under tools/, and links them into bin/.
//
// Finished tools are kept in the workshop's cache directory, under a key that depends on their inputs: the pinned
// modules, the Go version, the platform and the linker flags. So a second clone with the same inputs as the first uses
// the first one's tools without building them, and once an input has changed, the tools are built again.
package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Platform is an operating system and an architecture, with Go's names.
type Platform struct{ OS, Arch string }

// String returns the platform as Go's tools print it, such as "linux/amd64".
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// ParsePlatform parses a platform such as "linux/amd64".
func ParsePlatform(text string) (Platform, error) {
	goos, arch, found := strings.Cut(text, "/")
	if !found || goos == "" || arch == "" || strings.Contains(arch, "/") {
		return Platform{}, fmt.Errorf("platform %q: write it as OS/ARCH, such as darwin/arm64", text)
	}
	return Platform{OS: goos, Arch: arch}, nil
}

// Component is one tool: a command package of a pinned module.
type Component struct {
	// Name is the tool's file name in bin/.
	Name string
	// Package is the command's import path.
	Package string
}

// Set is one tools module: components that share one set of pins.
type Set struct {
	// Name is the module's folder below tools/, or "tools" for tools/ itself.
	Name string
	// Dir is the module's folder.
	Dir string
	// Components are in the order of the module's tool directives.
	Components []Component
	// versions are the pinned versions of all required modules.
	versions map[string]string
}

// Main is the name of the set with the control plane and the generators.
const Main = "tools"

// versionVariables are the variables that the linker sets to the pinned version of a module. Without them, Kubernetes
// programs that are built outside the release process report v0.0.0.
var versionVariables = []struct {
	module    string
	variables []string
	trimV     bool
}{
	{module: "k8s.io/kubernetes", variables: []string{
		"k8s.io/component-base/version.gitVersion",
		"k8s.io/client-go/pkg/version.gitVersion",
		"sigs.k8s.io/kwok/pkg/consts.KubeVersion",
	}},
	{module: "sigs.k8s.io/kwok", variables: []string{"sigs.k8s.io/kwok/pkg/consts.Version"}, trimV: true},
	{module: "sigs.k8s.io/controller-tools", variables: []string{"sigs.k8s.io/controller-tools/pkg/version.version"}},
	{module: "sigs.k8s.io/kustomize/kustomize/v5", variables: []string{"sigs.k8s.io/kustomize/api/provenance.version"}},
	{module: "github.com/golangci/golangci-lint/v2", variables: []string{"main.version"}, trimV: true},
	{module: "github.com/prometheus-operator/prometheus-operator", variables: []string{"github.com/prometheus/common/version.Version"}, trimV: true},
}

// renamed maps command packages to better file names.
var renamed = map[string]string{
	"go.etcd.io/etcd/server/v3":                                       "etcd",
	"github.com/prometheus-operator/prometheus-operator/cmd/operator": "prometheus-operator",
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// LoadSet reads the tools module with this name below root. If there is none, the error lists the names of the modules.
func LoadSet(ctx context.Context, root, name string) (Set, error) {
	dir := filepath.Join(root, "tools")
	if name != Main {
		dir = filepath.Join(dir, name)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return Set{}, fmt.Errorf("there is no tool set %q: choose one of %s", name, strings.Join(setNames(root), ", "))
	}
	edit := exec.CommandContext(ctx, "go", "mod", "edit", "-json")
	edit.Dir = dir
	out, err := edit.Output()
	if err != nil {
		return Set{}, fmt.Errorf("read %s: %w", filepath.Join(dir, "go.mod"), explain(err, nil))
	}
	var module struct {
		Tool    []struct{ Path string }
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &module); err != nil {
		return Set{}, fmt.Errorf("read %s: %w", filepath.Join(dir, "go.mod"), err)
	}
	set := Set{Name: name, Dir: dir, versions: map[string]string{}}
	for _, tool := range module.Tool {
		set.Components = append(set.Components, Component{Name: binaryName(tool.Path), Package: tool.Path})
	}
	for _, require := range module.Require {
		set.versions[require.Path] = require.Version
	}
	return set, nil
}

func setNames(root string) []string {
	names := []string{Main}
	modules, _ := filepath.Glob(filepath.Join(root, "tools", "*", "go.mod"))
	for _, module := range modules {
		names = append(names, filepath.Base(filepath.Dir(module)))
	}
	return names
}

// binaryName returns the name that `go install` would choose, unless the command is renamed.
func binaryName(pkg string) string {
	if name, ok := renamed[pkg]; ok {
		return name
	}
	base := path.Base(pkg)
	if majorVersion.MatchString(base) {
		base = path.Base(path.Dir(pkg))
	}
	return base
}

// linkerFlags returns flags that leave out symbol tables and set the version variables.
func (s Set) linkerFlags() string {
	flags := []string{"-s", "-w"}
	for _, stamp := range versionVariables {
		version, pinned := s.versions[stamp.module]
		if !pinned {
			continue
		}
		if stamp.trimV {
			version = strings.TrimPrefix(version, "v")
		}
		for _, variable := range stamp.variables {
			flags = append(flags, "-X", variable+"="+version)
		}
	}
	return strings.Join(flags, " ")
}

// key returns the set's name with a hash of the inputs that the package comment lists.
func (s Set) key(goVersion string, platform Platform) (string, error) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(s.Dir, name))
		if err != nil {
			return "", fmt.Errorf("read the pinned versions of the tools: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n%s\n", name, len(content), content)
	}
	fmt.Fprintf(hash, "%s %s %s", goVersion, platform, s.linkerFlags())
	return s.Name + "-" + hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// Command cert-manager prints the manifests of cert-manager, rendered from the chart in cert-manager's own Go module:
// go.mod pins its version, and go.sum its checksum. Helm is used here only as a library that renders the chart's
// templates: it connects to no cluster and leaves nothing in one.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// module is the Go module that contains the chart.
const module = "github.com/cert-manager/cert-manager"

// name is the name of the release and of its namespace, as in cert-manager's own manifests.
const name = "cert-manager"

// values are the chart's settings that differ from its defaults.
var values = map[string]any{
	"crds": map[string]any{"enabled": true},
	// This is a Job that `helm install` waits for. Stage 5's Makefile waits for the Deployments instead.
	"startupapicheck": map[string]any{"enabled": false},
}

// namespace has a label by which stage 5's Makefile distinguishes its own cert-manager from someone else's.
const namespace = `apiVersion: v1
kind: Namespace
metadata:
  name: %s
  labels:
    app.kubernetes.io/part-of: operator-workshop
`

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "cert-manager: %v\n", err)
		os.Exit(1)
	}
}

func run(output io.Writer) error {
	version, dir, err := findModule()
	if err != nil {
		return err
	}
	manifests, err := render(filepath.Join(dir, "deploy", "charts", name), version)
	if err != nil {
		return err
	}
	fmt.Fprintf(output, "# %s %s, the API group %s\n", name, version, certmanager.GroupName)
	fmt.Fprintf(output, namespace, name)
	for _, manifest := range manifests {
		fmt.Fprintf(output, "---\n%s\n", strings.TrimSpace(manifest.Content))
	}
	return nil
}

// findModule asks Go for the pinned version and its folder. Go has verified the module against go.sum.
func findModule() (version, dir string, err error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Version}}\n{{.Dir}}", module)
	var problem bytes.Buffer
	list.Stderr = &problem
	answer, err := list.Output()
	if err != nil {
		return "", "", fmt.Errorf("find the module %s: %w: %s", module, err, strings.TrimSpace(problem.String()))
	}
	version, dir, _ = strings.Cut(strings.TrimSpace(string(answer)), "\n")
	if dir == "" {
		return "", "", fmt.Errorf("find the module %s: it is not downloaded: run `go mod download`", module)
	}
	return version, dir, nil
}

// render fills in the chart's templates, and sorts the manifests into the order in which they can be installed.
func render(dir, version string) ([]releaseutil.Manifest, error) {
	chart, err := loader.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("read the chart: %w", err)
	}
	// The chart in the source has version v0.0.0; cert-manager's release process fills in the real one.
	chart.Metadata.Version, chart.Metadata.AppVersion = version, version

	options := chartutil.ReleaseOptions{Name: name, Namespace: name, IsInstall: true}
	filled, err := chartutil.ToRenderValues(chart, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("read the chart's values: %w", err)
	}
	files, err := engine.Render(chart, filled)
	if err != nil {
		return nil, fmt.Errorf("fill in the chart: %w", err)
	}
	for file := range files {
		if path.Ext(file) != ".yaml" {
			delete(files, file)
		}
	}
	_, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, fmt.Errorf("sort the manifests: %w", err)
	}
	return slices.DeleteFunc(manifests, func(manifest releaseutil.Manifest) bool { return manifest.Head == nil }), nil
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// bundleFolder contains all files of the bundle, except bundle.Dockerfile.
const bundleFolder = "bundle"

// files maps paths, written with slashes, to the contents of files.
type files map[string][]byte

func makeBundle(m *manifests, chosen options) (files, error) {
	packageName, err := m.packageName()
	if err != nil {
		return nil, err
	}
	granted, err := m.grants()
	if err != nil {
		return nil, err
	}
	csv, err := makeVersion(m, chosen.version, granted)
	if err != nil {
		return nil, err
	}

	made := files{}
	if err := made.add("manifests/"+packageName+".clusterserviceversion.yaml", csv); err != nil {
		return nil, err
	}
	for _, object := range slices.Concat(m.definitions, m.others, granted.others) {
		// OLM puts all namespaced objects in the operator's namespace.
		object = object.DeepCopy()
		object.SetNamespace("")
		if err := made.add("manifests/"+fileName(object), object); err != nil {
			return nil, err
		}
	}
	if m.scorecard != nil {
		if err := made.add("tests/scorecard/config.yaml", m.scorecard); err != nil {
			return nil, err
		}
	}
	labels := makeLabels(packageName, chosen, m.scorecard != nil)
	made[bundleFolder+"/metadata/annotations.yaml"] = labels.annotations()
	made["bundle.Dockerfile"] = labels.dockerfile()
	return made, nil
}

func (f files) add(path string, object *unstructured.Unstructured) error {
	path = bundleFolder + "/" + path
	if _, taken := f[path]; taken {
		return fmt.Errorf("there are two objects of kind %s with the name %s", object.GetKind(), object.GetName())
	}
	content, err := yaml.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f[path] = content
	return nil
}

// fileName returns the name that operator-sdk gives the file of an object.
func fileName(object *unstructured.Unstructured) string {
	kind := object.GroupVersionKind()
	if kind.Kind == "CustomResourceDefinition" {
		plural, group, _ := strings.Cut(object.GetName(), ".")
		return group + "_" + plural + ".yaml"
	}
	parts := []string{object.GetName(), kind.Group, kind.Version, strings.ToLower(kind.Kind)}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(parts, "_") + ".yaml"
}

// write replaces the whole bundle in the folder dir: OLM would also install files left over from an older bundle.
func (f files) write(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, bundleFolder)); err != nil {
		return fmt.Errorf("remove the old bundle: %w", err)
	}
	for path, content := range f {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make the bundle's folders: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("write the bundle: %w", err)
		}
	}
	return nil
}

// Package manifest reads YAML files that describe an operator, such as its samples and roles.
package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// refusedPrefix starts the first line of an invalid sample; the rest of the line is part of the message to expect.
const refusedPrefix = "# refused:"

// kustomization is the file that describes a folder to kustomize. It is not an object.
const kustomization = "kustomization.yaml"

// Files lists the YAML files of a folder, except kustomize's. If there are none, it returns an error: otherwise, for
// example, a suite could pass without having checked any sample.
func Files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the YAML files: %w", err)
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && entry.Name() != kustomization && slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s contains no YAML file (kustomization.yaml does not count): add one, or nothing is tested", dir)
	}
	return files, nil
}

// Read returns the objects of a YAML file, in order. It returns an error if there are none.
func Read(file string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read a manifest: %w", err)
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var objects []*unstructured.Unstructured
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, ExplainYAML(err, document))
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s contains no object", file)
	}
	return objects, nil
}

// Refusal returns the part of the API server's message that the first line of an invalid sample quotes. It returns an
// error if that line quotes none.
func Refusal(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read a sample: %w", err)
	}
	first, _, _ := strings.Cut(string(content), "\n")
	message, found := strings.CutPrefix(first, refusedPrefix)
	if message = strings.TrimSpace(message); !found || message == "" {
		return "", fmt.Errorf("%s does not say why it is refused: write %q and a part of the API server's message in its first line", file, refusedPrefix)
	}
	return message, nil
}

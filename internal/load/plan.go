package load

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	// planFile is the file that describes a stage's load, relative to the stage's folder.
	planFile = "config/bench/load.yaml"
	// placeholder is replaced with the number of the resource.
	placeholder = "NUMBER"
	// namespace is the namespace of all objects that package load creates, except the cluster-scoped ones.
	namespace = "default"
)

// plan is a stage's load.yaml. The package documentation explains the fields.
type plan struct {
	Resource    map[string]any   `json:"resource"`
	IdealWrites int              `json:"idealWrites"`
	Args        []string         `json:"args,omitempty"`
	Needs       []map[string]any `json:"needs,omitempty"`
}

// readPlan reads and checks the plan of the stage in a folder.
func readPlan(stage string) (*plan, error) {
	file := filepath.Join(stage, filepath.FromSlash(planFile))
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing: only a stage that has it can be measured", file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the stage's load: %w", err)
	}
	read := &plan{}
	if err := yaml.UnmarshalStrict(content, read); err != nil {
		return nil, fmt.Errorf("read %s: %s", file, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	if err := read.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return read, nil
}

func (p *plan) validate() error {
	first := p.object(1)
	switch {
	case first.GetAPIVersion() == "" || first.GetKind() == "":
		return errors.New("resource needs an apiVersion and a kind")
	case first.GetName() == "" || first.GetName() == p.object(2).GetName():
		return fmt.Errorf("resource needs a metadata.name with the word %s in it", placeholder)
	case p.IdealWrites < 1:
		return fmt.Errorf("idealWrites is %d: give the number of writes that one resource needs, at least 1", p.IdealWrites)
	}
	return nil
}

func (p *plan) object(number int) *unstructured.Unstructured {
	object, _ := fill(p.Resource, strconv.Itoa(number)).(map[string]any)
	made := &unstructured.Unstructured{Object: object}
	made.SetNamespace(namespace)
	return made
}

// fill returns a copy of a YAML value in which the placeholder is replaced in all strings except the keys.
func fill(value any, number string) any {
	switch typed := value.(type) {
	case string:
		return strings.ReplaceAll(typed, placeholder, number)
	case map[string]any:
		filled := make(map[string]any, len(typed))
		for key, each := range typed {
			filled[key] = fill(each, number)
		}
		return filled
	case []any:
		filled := make([]any, len(typed))
		for i, each := range typed {
			filled[i] = fill(each, number)
		}
		return filled
	}
	return value
}

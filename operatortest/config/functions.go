package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"example.com/operator-workshop/operatortest/internal/manifest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

func compile(expression string) (cel.Program, *cel.Type, error) {
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.OptionalTypes(), ext.Strings())
	if err != nil {
		return nil, nil, err
	}
	checked, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, nil, fmt.Errorf("%q is not a CEL expression: %w", expression, issues.Err())
	}
	program, err := env.Program(checked)
	return program, checked.OutputType(), err
}

// maybe reports whether a value of type found can be of type wanted; fields of object may have any type.
func maybe(found, wanted *cel.Type) bool {
	return found.IsExactType(wanted) || found.IsExactType(cel.DynType)
}

// absent reports whether an evaluation failed because something doesn't exist yet, such as a status or its first condition.
func absent(err error) bool {
	return slices.ContainsFunc([]string{"no such key: ", "index out of bounds: ", "optional.none() dereference"}, func(reason string) bool {
		return strings.Contains(err.Error(), reason)
	})
}

func converged(expression string) (func(*unstructured.Unstructured) error, error) {
	program, result, err := compile(expression)
	if err != nil {
		return nil, err
	}
	if !maybe(result, cel.BoolType) {
		return nil, fmt.Errorf("%s has the type %s, not bool: compare it, for example with ==", expression, result)
	}
	return func(object *unstructured.Unstructured) error {
		result, _, err := program.Eval(map[string]any{"object": object.Object})
		switch {
		case err != nil && absent(err):
			return fmt.Errorf("%s: %w", expression, err)
		case err != nil:
			return trial.Unusable(fmt.Errorf("converged: %s can't be evaluated: %w", expression, err))
		}
		met, isBool := result.Value().(bool)
		if !isBool {
			return trial.Unusable(fmt.Errorf("converged: %s is %v, not true or false: compare it, for example with ==", expression, result.Value()))
		}
		if !met {
			status, _ := json.Marshal(object.Object["status"])
			return fmt.Errorf("%s is false; the status is %s", expression, status)
		}
		return nil
	}, nil
}

// nameOf turns an expression into a function that returns a child's name. For the sample, the expression's value must
// be a string. For a resource for which the value is not a string, or can't be determined, the function returns "".
func nameOf(expression string, sample *unstructured.Unstructured) (func(*unstructured.Unstructured) string, error) {
	program, _, err := compile(expression)
	if err != nil {
		return nil, err
	}
	const namespace = "namespace" // stands in for a trial's namespace
	placed := sample.DeepCopy()
	manifest.FillObject(placed, namespace)
	placed.SetNamespace(namespace)
	result, _, err := program.Eval(map[string]any{"object": placed.Object})
	if err != nil {
		return nil, fmt.Errorf("%s, for the sample: %w (write a field that may be absent as object.?spec.field.orValue(\"\"))", expression, err)
	}
	if _, isString := result.Value().(string); !isString {
		return nil, fmt.Errorf("%s is %v for the sample, not a string", expression, result.Value())
	}
	return func(object *unstructured.Unstructured) string {
		result, _, err := program.Eval(map[string]any{"object": object.Object})
		if err != nil {
			return "" // probably because a field that the name depends on is absent
		}
		name, _ := result.Value().(string)
		return name
	}, nil
}

func patches(declared map[string]map[string]any) (map[string]string, error) {
	made := map[string]string{}
	for what, patch := range declared {
		text, err := encode(patch)
		if err != nil {
			return nil, fmt.Errorf("patch %q: %w", what, err)
		}
		made[what] = text
	}
	return made, nil
}

func encode(patch map[string]any) (string, error) {
	if len(patch) == 0 {
		return "", errors.New("the patch is empty")
	}
	content, err := json.Marshal(patch)
	return string(content), err
}

// normalizer returns a function that removes from an object the fields that rules name, and replaces the object's name
// if the rules say that the name is generated. Without rules, it returns nil.
func normalizer(rules []Normalize) (func(*unstructured.Unstructured), error) {
	removals := make([]jsonpatch.Patch, len(rules))
	for i, rule := range rules {
		var operations []map[string]any
		for _, field := range rule.Fields {
			if !strings.HasPrefix(field, "/") {
				return nil, fmt.Errorf("normalize %s: %q is not a JSON pointer, which begins with /", rule.Kind, field)
			}
			operations = append(operations, map[string]any{"op": "remove", "path": field})
		}
		content, err := json.Marshal(operations)
		if err != nil {
			return nil, err
		}
		if removals[i], err = jsonpatch.DecodePatch(content); err != nil {
			return nil, fmt.Errorf("normalize %s: %w", rule.Kind, err)
		}
	}
	if len(rules) == 0 {
		return nil, nil
	}
	options := jsonpatch.NewApplyOptions()
	options.AllowMissingPathOnRemove = true
	return func(object *unstructured.Unstructured) {
		for i, rule := range rules {
			if object.GetKind() != rule.Kind {
				continue
			}
			if rule.Name {
				object.SetName("generated")
			}
			apply(object, removals[i], options)
		}
	}, nil
}

// apply applies a patch to the object. If the patch doesn't apply, the object is left unchanged.
func apply(object *unstructured.Unstructured, patch jsonpatch.Patch, options *jsonpatch.ApplyOptions) {
	content, err := json.Marshal(object.Object)
	if err != nil {
		return
	}
	if content, err = patch.ApplyWithOptions(content, options); err != nil {
		return
	}
	changed := map[string]any{}
	if utiljson.Unmarshal(content, &changed) == nil {
		object.Object = changed
	}
}

// roleFiles returns the files among paths and, from the folders among them, the files that contain a Role or a
// ClusterRole.
func roleFiles(dir string, paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		path = inside(dir, path)
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("roles: %w", err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		listed, err := manifest.Files(path)
		if err != nil {
			return nil, fmt.Errorf("roles: %w", err)
		}
		before := len(files)
		for _, file := range listed {
			if holdsRole(file) {
				files = append(files, file)
			}
		}
		if len(files) == before {
			return nil, fmt.Errorf("roles: no file in %s contains a Role or a ClusterRole", filepath.Clean(path))
		}
	}
	return files, nil
}

func holdsRole(file string) bool {
	objects, err := manifest.Read(file)
	return err == nil && slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool {
		return slices.Contains([]string{"Role", "ClusterRole"}, object.GetKind())
	})
}

// with returns a copy of a map with one more entry, unless the map already has one for the key.
func with(entries map[string]string, key, value string) map[string]string {
	all := map[string]string{key: value}
	maps.Copy(all, entries)
	return all
}

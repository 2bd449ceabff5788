package manifest

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Placeholder stands for the name of the trial's namespace in the strings that describe an operator, such as samples,
// prepared objects, values of fields, and patches. Spaces inside the braces make no difference.
const Placeholder = "{{.Namespace}}"

var (
	placeholder = regexp.MustCompile(`\{\{\s*\.Namespace\s*\}\}`)
	// action matches anything that looks like a placeholder.
	action = regexp.MustCompile(`\{\{[^{}]*\}\}`)
	// unquoted matches a placeholder that YAML takes for a map.
	unquoted = regexp.MustCompile(`(?m)(:|^\s*-)\s+\{\{`)
)

// Fill replaces each placeholder in a string with a namespace's name.
func Fill(text, namespace string) string { return placeholder.ReplaceAllLiteralString(text, namespace) }

// FillObject replaces the placeholders in an object.
func FillObject(object *unstructured.Unstructured, namespace string) {
	object.Object = FillFields(object.Object, namespace)
}

// FillFields returns a copy of some fields in which a namespace's name replaces each placeholder.
func FillFields(fields map[string]any, namespace string) map[string]any {
	return mapFields(fields, func(text string) string { return Fill(text, namespace) })
}

// EmptyFields is the reverse of FillFields: it returns a copy of some fields in which the placeholder replaces a
// namespace's name.
func EmptyFields(fields map[string]any, namespace string) map[string]any {
	return mapFields(fields, func(text string) string { return strings.ReplaceAll(text, namespace, Placeholder) })
}

// mapFields returns a copy of some fields, with change applied to each string and each key. It returns nil for nil.
func mapFields(fields map[string]any, change func(string) string) map[string]any {
	if fields == nil {
		return nil
	}
	made := map[string]any{}
	for key, value := range fields {
		made[change(key)] = mapValue(value, change)
	}
	return made
}

func mapValue(value any, change func(string) string) any {
	switch value := value.(type) {
	case string:
		return change(value)
	case map[string]any:
		return mapFields(value, change)
	case []any:
		made := make([]any, len(value))
		for i := range value {
			made[i] = mapValue(value[i], change)
		}
		return made
	}
	return value
}

// Explain adds a note to the API server's error about an object that it refused, if the object still contains something
// that looks like a placeholder. Otherwise, it returns the error unchanged.
func Explain(err error, object *unstructured.Unstructured) error {
	if err == nil {
		return nil
	}
	var found string
	mapFields(object.Object, func(text string) string {
		if match := action.FindString(text); match != "" && (found == "" || match < found) {
			found = match
		}
		return text
	})
	if found == "" {
		return err
	}
	return fmt.Errorf("%w (it contains %s as it is, because the only placeholder in an object is %s)", err, found, Placeholder)
}

// ExplainYAML adds a note to an error from reading YAML, if the YAML contains an unquoted string that begins with a
// placeholder. Otherwise, it returns the error unchanged.
func ExplainYAML(err error, content []byte) error {
	if err == nil || !unquoted.Match(content) {
		return err
	}
	return fmt.Errorf("%w (put a text that begins with a placeholder into quotes: %q)", err, Placeholder)
}

package learn

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/operator-workshop/operatortest/internal/trial"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// child is an object that the operator created, as it was in each run.
type child struct {
	kind schema.GroupVersionKind
	// name are CEL expressions for the child's name, the likeliest first. There are none if the name is generated.
	name []string
	// first and second are the object in each run; second is nil if only one run created it.
	first, second *unstructured.Unstructured
	Drift         []proposal
}

// source is a field that can be part of a name.
type source struct{ expression, value string }

// sourcesOf returns the texts in a resource from which operators build names.
func sourcesOf(resource *unstructured.Unstructured) []source {
	sources := []source{{"object.metadata.name", resource.GetName()}}
	spec, _, _ := unstructured.NestedMap(resource.Object, "spec")
	for _, path := range trial.Leaves(spec, nil) {
		if text, _, _ := unstructured.NestedString(spec, path...); text != "" {
			sources = append(sources, source{"object.spec" + selectors(path), text})
		}
	}
	return append(sources, source{"object.metadata.namespace", resource.GetNamespace()})
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// selectors writes a path in CEL.
func selectors(path []string) string {
	text := &strings.Builder{}
	for _, name := range path {
		if identifier.MatchString(name) && !slices.Contains([]string{"in", "true", "false", "null"}, name) {
			text.WriteString("." + name)
			continue
		}
		text.WriteString("[" + strconv.Quote(name) + "]")
	}
	return text.String()
}

// expressionsFor returns CEL expressions for a name, the likeliest first. The last one is the name itself.
func expressionsFor(name string, sources []source) []string {
	var exact, affixed []string
	for _, source := range sources {
		before, after, found := strings.Cut(name, source.value)
		switch {
		case !found || source.value == "":
		case before == "" && after == "":
			exact = append(exact, source.expression)
		case apart(before, after):
			terms := []string{strconv.Quote(before), source.expression, strconv.Quote(after)}
			terms = slices.DeleteFunc(terms, func(term string) bool { return term == `""` })
			affixed = append(affixed, strings.Join(terms, " + "))
		}
	}
	return append(append(exact, affixed...), strconv.Quote(name))
}

// apart reports whether a part of a name is separated from the rest by dashes or dots. Otherwise a short value, such as "a",
// would be found in any name.
func apart(before, after string) bool {
	return (before == "" || strings.HasSuffix(before, "-") || strings.HasSuffix(before, ".")) &&
		(after == "" || strings.HasPrefix(after, "-") || strings.HasPrefix(after, "."))
}

// pair matches the objects of two equal runs that are the same child.
func pair(first, second run) []child {
	var children []child
	var left []*unstructured.Unstructured
	rest := slices.Clone(second.children)
	sources, others := sourcesOf(first.resource), sourcesOf(second.resource)
	for _, made := range first.children {
		var shared []string
		i := slices.IndexFunc(rest, func(other *unstructured.Unstructured) bool {
			expressions := expressionsFor(other.GetName(), others)
			shared = slices.DeleteFunc(expressionsFor(made.GetName(), sources), func(expression string) bool {
				return !slices.Contains(expressions, expression)
			})
			return other.GroupVersionKind() == made.GroupVersionKind() && len(shared) > 0
		})
		if i < 0 {
			left = append(left, made)
			continue
		}
		children = append(children, child{kind: made.GroupVersionKind(), name: shared, first: made, second: rest[i]})
		rest = slices.Delete(rest, i, i+1)
	}
	for _, made := range left {
		generated := child{kind: made.GroupVersionKind(), first: made}
		i := slices.IndexFunc(rest, func(other *unstructured.Unstructured) bool { return other.GroupVersionKind() == generated.kind })
		if i >= 0 {
			generated.second = rest[i]
			rest = slices.Delete(rest, i, i+1)
		}
		children = append(children, generated)
	}
	for _, made := range rest {
		children = append(children, child{kind: made.GroupVersionKind(), first: made})
	}
	return children
}

package learn

import (
	"maps"
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
	// name lists CEL expressions for the child's name, the likeliest first. It is empty if the name is generated, or if
	// only one run created the child.
	name []string
	// first and second are the object in each run. If only one run created it, first is that run's object, and second is
	// nil.
	first, second *unstructured.Unstructured
	// Labels tell a child with a generated name from the others of its kind.
	Labels map[string]string
	Drift  []proposal
	// above means that the child is cluster-scoped and its resource is not, so the resource can't be the child's owner.
	above bool
}

// source is a field of a resource: its CEL expression, and its value, which may be part of a child's name.
type source struct{ expression, value string }

// sourcesOf returns the fields of a resource from which an operator may build names: the resource's name, the strings
// in its spec, and its namespace.
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

// apart reports whether part of a name is separated from the rest by dashes or dots. Without this check, a short value,
// such as "a", would be found in most names.
func apart(before, after string) bool {
	return (before == "" || strings.HasSuffix(before, "-") || strings.HasSuffix(before, ".")) &&
		(after == "" || strings.HasPrefix(after, "-") || strings.HasPrefix(after, "."))
}

// pair returns the children of two runs on the same sample. It matches the objects that are the same child; a child
// without a match has no second object.
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
		generated := child{kind: made.GroupVersionKind(), first: made, Labels: distinguishing(made, first.children, second.children)}
		i := slices.IndexFunc(rest, func(other *unstructured.Unstructured) bool {
			return other.GroupVersionKind() == generated.kind && hasLabels(other, generated.Labels)
		})
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

// distinguishing returns those labels of an object that together select exactly one object of its kind in each run. It
// returns nil if the object is the only one of its kind, or if no labels tell it from the others.
func distinguishing(made *unstructured.Unstructured, first, second []*unstructured.Unstructured) map[string]string {
	first, second = sameKind(made, first), sameKind(made, second)
	found := maps.Clone(made.GetLabels())
	maps.DeleteFunc(found, func(key, value string) bool {
		has := func(object *unstructured.Unstructured) bool { return hasLabels(object, map[string]string{key: value}) }
		// Drop the values that the second run lacks, because they are random, and those that all objects share.
		return !slices.ContainsFunc(second, has) || !slices.ContainsFunc(first, func(object *unstructured.Unstructured) bool { return !has(object) })
	})
	lacks := func(object *unstructured.Unstructured) bool { return !hasLabels(object, found) }
	if len(found) == 0 || len(slices.DeleteFunc(first, lacks)) != 1 || len(slices.DeleteFunc(second, lacks)) != 1 {
		return nil
	}
	return found
}

func sameKind(one *unstructured.Unstructured, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
		return object.GroupVersionKind() != one.GroupVersionKind()
	})
}

func hasLabels(object *unstructured.Unstructured, wanted map[string]string) bool {
	for key, value := range wanted {
		if found, has := object.GetLabels()[key]; !has || found != value {
			return false
		}
	}
	return true
}

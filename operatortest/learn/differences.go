package learn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"example.com/operator-workshop/operatortest/config"
)

// rules returns the normalize rules for the fields that differed between two runs on the same sample.
func rules(first, second run, children []child) []config.Normalize {
	var made []config.Normalize
	add := func(kind string, fields []string) {
		if len(fields) == 0 {
			return
		}
		i := slices.IndexFunc(made, func(rule config.Normalize) bool { return rule.Kind == kind })
		if i < 0 {
			made = append(made, config.Normalize{Kind: kind})
			i = len(made) - 1
		}
		made[i].Fields = slices.Compact(slices.Sorted(slices.Values(append(made[i].Fields, fields...))))
	}
	key := first.resource.GetKind() + "/" + first.resource.GetName()
	add(first.resource.GetKind(), differences(first.state[key], second.state[key], ""))
	for _, child := range children {
		if child.second == nil {
			continue
		}
		kind := child.kind.Kind
		add(kind, differences(first.state[kind+"/"+child.first.GetName()], second.state[kind+"/"+child.second.GetName()], ""))
	}
	return made
}

// differences returns JSON pointers to the fields in which two normalised objects differ.
func differences(one, other any, pointer string) []string {
	if equality.Semantic.DeepEqual(one, other) {
		return nil
	}
	var found []string
	fields, areFields := one.(map[string]any)
	others, areOthers := other.(map[string]any)
	if areFields && areOthers {
		for _, name := range slices.Sorted(maps.Keys(union(fields, others))) {
			found = append(found, differences(fields[name], others[name], pointer+"/"+escape.Replace(name))...)
		}
		return found
	}
	items, areItems := one.([]any)
	otherItems, areOtherItems := other.([]any)
	// Removing an item shifts the indices of those after it. So return a pointer to the whole list, unless both lists have
	// the same length and contain only objects.
	if !areItems || !areOtherItems || len(items) != len(otherItems) || !areObjects(items) || !areObjects(otherItems) {
		return []string{pointer}
	}
	for i := range items {
		found = append(found, differences(items[i], otherItems[i], fmt.Sprintf("%s/%d", pointer, i))...)
	}
	return found
}

// escape writes a name as part of a JSON pointer.
var escape = strings.NewReplacer("~", "~0", "/", "~1")

func union(one, other map[string]any) map[string]any {
	all := maps.Clone(one)
	maps.Copy(all, other)
	return all
}

func areObjects(items []any) bool {
	return !slices.ContainsFunc(items, func(item any) bool {
		_, isObject := item.(map[string]any)
		return !isObject
	})
}

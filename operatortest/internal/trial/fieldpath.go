package trial

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// at returns an object's value at a path from metadata.managedFields. The path's elements are names of fields, and keys
// or values of list entries.
func at(node any, path fieldpath.Path) (any, bool) {
	for _, element := range path {
		switch fields := node.(type) {
		case map[string]any:
			if element.FieldName == nil {
				return nil, false
			}
			inner, found := fields[*element.FieldName]
			if !found {
				return nil, false
			}
			node = inner
		case []any:
			i := indexOf(fields, element)
			if i < 0 {
				return nil, false
			}
			node = fields[i]
		default:
			return nil, false
		}
	}
	return node, true
}

// indexOf returns the position of an entry in a list, or -1 if it is absent.
func indexOf(list []any, element fieldpath.PathElement) int {
	switch {
	case element.Key != nil:
		return slices.IndexFunc(list, func(entry any) bool {
			fields, ok := entry.(map[string]any)
			return ok && !slices.ContainsFunc(*element.Key, func(key value.Field) bool {
				return !value.Equals(value.NewValueInterface(fields[key.Name]), key.Value)
			})
		})
	case element.Value != nil:
		return slices.IndexFunc(list, func(entry any) bool { return value.Equals(value.NewValueInterface(entry), *element.Value) })
	}
	return -1
}

// outermost returns the part of a path up to the first list entry that an object does not have, or the whole path if
// it has all of them.
func outermost(object any, path fieldpath.Path) fieldpath.Path {
	for i, element := range path {
		if element.FieldName != nil {
			continue
		}
		if _, found := at(object, path[:i+1]); !found {
			return path[:i+1]
		}
	}
	return path
}

// remove removes the value at a path from an object, and then each parent that has become empty. It never removes a list
// entry that contains the value.
func remove(fields map[string]any, path fieldpath.Path) {
	name := path[0].FieldName
	if _, found := at(fields, path); !found || name == nil {
		return
	}
	switch inner := fields[*name].(type) {
	case map[string]any:
		if len(path) > 1 {
			remove(inner, path[1:])
		}
		if len(path) > 1 && len(inner) > 0 {
			return
		}
	case []any:
		if len(path) == 1 {
			break
		}
		i := indexOf(inner, path[1])
		if entry, ok := inner[i].(map[string]any); ok && len(path) > 2 {
			remove(entry, path[2:])
			return
		}
		fields[*name] = slices.Delete(inner, i, i+1)
		if len(inner) > 1 {
			return
		}
	}
	delete(fields, *name)
}

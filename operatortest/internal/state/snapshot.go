// Package state describes what an operator has created in a namespace, without what differs between namespaces, so that
// two states can be compared.
package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// Snapshot contains the operator's work in a namespace, without what differs between two namespaces with the same
// resources.
type Snapshot map[string]any

// External is the key of what exists outside Kubernetes.
const External = "outside Kubernetes"

// Difference shows each object that differs, in YAML: expected lines with -, and found lines with +. It is empty if
// both states are the same.
func (s Snapshot) Difference(wanted Snapshot) string {
	var differing []string
	for _, key := range slices.Sorted(maps.Keys(union(wanted, s))) {
		if difference := Diff(wanted[key], s[key]); difference != "" {
			differing = append(differing, key+":\n"+difference)
		}
	}
	return strings.Join(differing, "\n")
}

func union(one, other Snapshot) Snapshot {
	all := maps.Clone(other)
	maps.Copy(all, one)
	return all
}

// Add adds an object. It distinguishes objects that have the same name once they are normalised, as two objects with
// generated names may.
func (s Snapshot) Add(name string, content any) {
	key := name
	for i := 2; s[key] != nil; i++ {
		key = fmt.Sprintf("%s (%d)", name, i)
	}
	s[key] = content
}

// With returns a copy of the state in which the object with the given key has been patched.
func (s Snapshot) With(key string, patches []string) (Snapshot, error) {
	content, err := json.Marshal(s[key])
	if err != nil {
		return nil, fmt.Errorf("write %s as JSON: %w", key, err)
	}
	for _, patch := range patches {
		if content, err = jsonpatch.MergePatch(content, []byte(patch)); err != nil {
			return nil, fmt.Errorf("apply %s to %s: %w", patch, key, err)
		}
	}
	var changed any
	if err := json.Unmarshal(content, &changed); err != nil {
		return nil, fmt.Errorf("read %s from JSON: %w", key, err)
	}
	result := maps.Clone(s)
	result[key] = changed
	return result, nil
}

package specgen

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ChangesOf returns specs that differ from the sample's in one field each: the immutable field with the given path, or
// a field inside it.
func (s *Specs) ChangesOf(path string) []Candidate {
	free := *s
	free.Immutable = slices.DeleteFunc(slices.Clone(s.Immutable), func(other string) bool { return other == path })
	changes, _ := free.Changes()
	var candidates []Candidate
	for _, change := range changes {
		if Same(change.From, s.Base) && (change.Path == path || below(change.Path, path)) {
			candidates = append(candidates, change.Candidates...)
		}
	}
	return candidates
}

// Change is a change to exactly one field.
type Change struct {
	position
	group group
	From  map[string]any
	// Candidates are specs that differ from From only in this field, all in the way that group says. It is enough if
	// the API server accepts one of them.
	Candidates []Candidate
	// Effective means that at least one candidate must have a visible effect. It is set if the change is to another value
	// or adds an entry to a list or map. A change that adds an object, or removes something, may have no effect.
	Effective bool
}

// Candidate is a spec, with a description of what is new in it.
type Candidate struct {
	What string
	To   map[string]any
}

// Other returns a spec that differs from the sample's in every field that may change and for which another value is
// known.
func (s *Specs) Other() map[string]any { return s.OtherThan(nil) }

// OtherThan is like Other, but keeps the fields at the given places. Fields and entries inside these may still change.
func (s *Specs) OtherThan(places []string) map[string]any {
	spec, _ := s.Build(s.Base, func(choice Choice) int {
		if slices.Contains(places, choice.Place) {
			return 0
		}
		grows := func(option option) bool {
			return option.group == another || option.group == longer || option.group == added
		}
		return slices.IndexFunc(choice.Options, grows) + 1
	})
	return spec
}

// Changes returns the changes to the sample's fields, and to the fields in objects that can be added to it. Each of
// them changes a single field. Changes also returns the paths of the fields for which no value other than the current
// one is known.
func (s *Specs) Changes() (changes []Change, unknown []string) {
	changes, unknown = s.changesBelow("", s.Base)
	slices.Sort(unknown)
	return changes, slices.Compact(unknown)
}

// changesBelow returns the changes to fields inside the field at outer, or to all fields if outer is empty.
func (s *Specs) changesBelow(outer string, from map[string]any) (changes []Change, unknown []string) {
	var choices []Choice
	_, unknown = s.Build(from, func(choice Choice) int {
		choices = append(choices, choice)
		return 0
	})
	for i, choice := range choices {
		if outer != "" && !below(choice.Place, outer) {
			continue
		}
		for _, group := range []group{another, longer, shorter, added, null, removed} {
			change := s.changeOne(from, i, choice, group)
			if len(change.Candidates) == 0 {
				continue
			}
			changes = append(changes, change)
			if group == added || group == longer && empty(choice.current) {
				inner, more := s.changesBelow(choice.Place, change.Candidates[0].To)
				changes, unknown = append(changes, inner...), append(unknown, more...)
			}
		}
	}
	return changes, unknown
}

// changeOne returns the change that makes only the i-th choice, with all options of a group as its candidates.
func (s *Specs) changeOne(from map[string]any, i int, made Choice, group group) Change {
	change := Change{position: made.position, group: group, From: from, Effective: group == another || group == longer}
	for o, option := range made.Options {
		if option.group != group {
			continue
		}
		seen := -1
		spec, _ := s.Build(from, func(Choice) int {
			if seen++; seen == i {
				return o + 1
			}
			return 0
		})
		what := fmt.Sprintf("%s from %s to %s", made.Place, shown(made.current), shown(option.value))
		change.Candidates = append(change.Candidates, Candidate{what, spec})
	}
	return change
}

// Ascend returns the specs of a sequence, changed so that the values of some fields only rise, in the order of Values:
// where a value would fall, the spec keeps the value of the spec before it. A value that isn't one of Values stays.
func (s *Specs) Ascend(stops []map[string]any, paths []string) []map[string]any {
	ascending := slices.Clone(stops)
	for i := 1; i < len(ascending); i++ {
		for _, path := range paths {
			before, after := s.Rank(ascending[i-1], path), s.Rank(ascending[i], path)
			if after < 0 || before <= after {
				continue
			}
			ascending[i] = runtime.DeepCopyJSON(ascending[i])
			_ = unstructured.SetNestedField(ascending[i], s.Values[path][before], fieldsOf(path)...) // it exists, because it has a rank
		}
	}
	return ascending
}

// Rank returns the position of a field's value among its Values, or -1 if it isn't one of them.
func (s *Specs) Rank(spec map[string]any, path string) int {
	current, found, err := unstructured.NestedFieldNoCopy(spec, fieldsOf(path)...)
	if !found || err != nil {
		return -1
	}
	return slices.IndexFunc(s.Values[path], func(value any) bool { return Same(value, current) })
}

// fieldsOf returns the names on a path below spec.
func fieldsOf(path string) []string { return strings.Split(strings.TrimPrefix(path, "spec."), ".") }

// shown formats a value for display.
func shown(value any) string {
	if _, gone := value.(absent); gone {
		return "nothing"
	}
	return OneLine(value)
}

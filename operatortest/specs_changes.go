package operatortest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// change is one field that becomes something else, and nothing but it.
type change struct {
	position
	group group
	from  map[string]any
	// candidates are specs that differ from it in this field, in the same way; one that is accepted will do.
	candidates []candidate
	// effective tells that at least one candidate must make a difference. Without a
	// value a field may well stand for the same as with it.
	effective bool
}

// candidate is a spec, and what is new in it.
type candidate struct {
	what string
	to   map[string]any
}

// other differs from the sample's spec in every field of which another value is known.
func (s *specs) other() map[string]any { return s.otherThan(nil) }

// otherThan does the same, but for the fields at some places, which stay as they are.
func (s *specs) otherThan(places []string) map[string]any {
	spec, _ := s.build(s.base, func(choice choice) int {
		if slices.Contains(places, choice.place) {
			return 0
		}
		grows := func(option option) bool {
			return option.group == another || option.group == longer || option.group == added
		}
		return slices.IndexFunc(choice.options, grows) + 1
	})
	return spec
}

// changes are all changes of one field of the sample, and of the fields of what
// can be added to it. It also returns the paths of the fields of which no value is known.
func (s *specs) changes() (changes []change, unknown []string) {
	changes, unknown = s.changesBelow("", s.base)
	slices.Sort(unknown)
	return changes, slices.Compact(unknown)
}

// changesBelow are the changes of fields inside of one, everywhere if that is empty.
func (s *specs) changesBelow(outer string, from map[string]any) (changes []change, unknown []string) {
	var choices []choice
	_, unknown = s.build(from, func(choice choice) int {
		choices = append(choices, choice)
		return 0
	})
	for i, choice := range choices {
		if outer != "" && !below(choice.place, outer) {
			continue
		}
		for _, group := range []group{another, longer, shorter, added, null, removed} {
			change := s.changeOne(from, i, choice, group)
			if len(change.candidates) == 0 {
				continue
			}
			changes = append(changes, change)
			if group == added || group == longer && empty(choice.current) {
				inner, more := s.changesBelow(choice.place, change.candidates[0].to)
				changes, unknown = append(changes, inner...), append(unknown, more...)
			}
		}
	}
	return changes, unknown
}

// changeOne makes the i-th choice in all ways of a group, and no other.
func (s *specs) changeOne(from map[string]any, i int, made choice, group group) change {
	change := change{position: made.position, group: group, from: from, effective: group == another || group == longer}
	for o, option := range made.options {
		if option.group != group {
			continue
		}
		seen := -1
		spec, _ := s.build(from, func(choice) int {
			if seen++; seen == i {
				return o + 1
			}
			return 0
		})
		what := fmt.Sprintf("%s from %s to %s", made.place, shown(made.current), shown(option.value))
		change.candidates = append(change.candidates, candidate{what, spec})
	}
	return change
}

// ascend returns the specs as stops of a journey on which the values of some fields only rise: a stop that
// would take one back keeps the value of the stop before.
func (s *specs) ascend(stops []map[string]any, paths []string) []map[string]any {
	ascending := slices.Clone(stops)
	for i := 1; i < len(ascending); i++ {
		for _, path := range paths {
			before, after := s.rank(ascending[i-1], path), s.rank(ascending[i], path)
			if after < 0 || before <= after {
				continue
			}
			ascending[i] = runtime.DeepCopyJSON(ascending[i])
			_ = unstructured.SetNestedField(ascending[i], s.values[path][before], fieldsOf(path)...) // it is there: it has a rank
		}
	}
	return ascending
}

// rank is the position of a field's value among its Values; negative if it is none of them.
func (s *specs) rank(spec map[string]any, path string) int {
	current, found, err := unstructured.NestedFieldNoCopy(spec, fieldsOf(path)...)
	if !found || err != nil {
		return -1
	}
	return slices.IndexFunc(s.values[path], func(value any) bool { return equal(value, current) })
}

// fieldsOf are the names on a path below spec.
func fieldsOf(path string) []string { return strings.Split(strings.TrimPrefix(path, "spec."), ".") }

// shown is how a reader sees a value.
func shown(value any) string {
	if _, gone := value.(absent); gone {
		return "nothing"
	}
	return oneLine(value)
}

package exercise

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"example.com/operator-workshop/internal/exercise/form"
)

// place is the path to a value in a YAML document: keys of mappings and indices of lists.
type place []any

// graftYAML applies the differences between two forms of a YAML file to the learner's file: it replaces, adds and
// removes keys and list elements. It leaves alone those that don't differ, with their comments, except that it removes
// the comments about code that is no longer missing. It returns false if the learner's file does not parse, or differs
// too much from the forms.
func graftYAML(theirs, before, after []byte) ([]byte, bool) {
	if bytes.Equal(theirs, before) {
		return after, true
	}
	old, errOld := documents(before)
	wanted, errWanted := documents(after)
	present, errPresent := documents(theirs)
	if errors.Join(errOld, errWanted, errPresent) != nil || len(old) != len(wanted) || len(present) != len(wanted) || len(wanted) == 0 {
		return nil, false
	}
	grafted := withoutStepComments(theirs, before, after)
	for i := range wanted {
		for _, at := range differences(old[i], wanted[i], nil) {
			var ok bool
			if grafted, ok = put(grafted, after, i, at); !ok {
				return nil, false
			}
			result, err := documents(grafted)
			if err != nil || len(result) != len(wanted) || !same(find(result[i], at), find(wanted[i], at)) {
				return nil, false
			}
		}
	}
	return grafted, true
}

// documents returns the top-level value of each document in a file.
func documents(source []byte) (all []*yaml.Node, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(source))
	for {
		document := &yaml.Node{}
		if err := decoder.Decode(document); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, document.Content[0])
	}
}

// differences returns the places where two values differ. Within each mapping and list, places that exist only in the
// first value come last.
func differences(before, after *yaml.Node, at place) (all []place) {
	below := func(step any) {
		next := append(slices.Clone(at), step)
		all = append(all, differences(find(before, place{step}), find(after, place{step}), next)...)
	}
	switch {
	case before == nil || after == nil || before.Kind != after.Kind:
		return []place{at}
	case before.Kind == yaml.MappingNode:
		for i := 0; i < len(after.Content); i += 2 {
			below(after.Content[i].Value)
		}
		for i := 0; i < len(before.Content); i += 2 {
			if key := before.Content[i].Value; find(after, place{key}) == nil {
				below(key)
			}
		}
	case before.Kind == yaml.SequenceNode:
		for i := range after.Content {
			below(i)
		}
		for i := len(before.Content) - 1; i >= len(after.Content); i-- {
			below(i)
		}
	case !same(before, after):
		return []place{at}
	}
	return all
}

// find returns the value at a place, or nil if there is none.
func find(node *yaml.Node, at place) *yaml.Node {
	for _, step := range at {
		_, node = child(node, step)
	}
	return node
}

// child returns a key of a mapping and its value. For an element of a list, it returns the element as both. If there is
// none, it returns nil.
func child(node *yaml.Node, step any) (key, value *yaml.Node) {
	switch step := step.(type) {
	case string:
		for i := 0; node != nil && node.Kind == yaml.MappingNode && i < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i], node.Content[i+1]
			}
		}
	case int:
		if node != nil && node.Kind == yaml.SequenceNode && step < len(node.Content) {
			return node.Content[step], node.Content[step]
		}
	}
	return nil, nil
}

func same(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	var left, right any
	return errors.Join(a.Decode(&left), b.Decode(&right)) == nil && reflect.DeepEqual(left, right)
}

// put copies the value at a place in a document from the other file to the learner's file, or removes it there if the
// other file has none. If the value shares a line with others in either file, or the learner's file lacks the value
// that contains it, put copies the containing value instead. If that is the whole document, put returns false.
func put(theirs, other []byte, document int, at place) ([]byte, bool) {
	present, err := documents(theirs)
	wanted, errOther := documents(other)
	if err := errors.Join(err, errOther); err != nil || len(at) == 0 {
		return nil, false
	}
	mine, source := present[document], wanted[document]
	if same(find(mine, at), find(source, at)) {
		return theirs, true
	}
	upper, step := at[:len(at)-1], at[len(at)-1]
	parent, otherParent := find(mine, upper), find(source, upper)
	lines, otherLines := strings.Split(string(theirs), "\n"), strings.Split(string(other), "\n")
	key, _ := child(parent, step)
	otherKey, _ := child(otherParent, step)
	if parent == nil || !onOwnLine(lines, parent, key) || otherKey != nil && !onOwnLine(otherLines, otherParent, otherKey) {
		return put(theirs, other, document, upper)
	}
	var block []string
	if otherKey != nil {
		first := otherKey.Line
		for key == nil && first > 1 && commentAt(otherLines[first-2], form.Depth(otherLines[first-1])) {
			first-- // a new key brings its comments along
		}
		block = shifted(otherLines[first-1:form.LastLine(otherLines, otherKey.Line)], form.Depth(otherLines[otherKey.Line-1]), depthBelow(lines, parent))
	}
	if key != nil {
		first, last := key.Line, form.LastLine(lines, key.Line)
		for block == nil && first > 1 && commentAt(lines[first-2], form.Depth(lines[first-1])) {
			first-- // a removed key takes its comments with it
		}
		lines = slices.Replace(lines, first-1, last, block...)
	} else {
		lines = slices.Insert(lines, above(lines, parent, otherParent, step), block...)
	}
	return []byte(strings.Join(lines, "\n")), true
}

// onOwnLine reports whether a key or an element begins a line. If key is nil, it reports whether a new one in the parent
// would.
func onOwnLine(lines []string, parent, key *yaml.Node) bool {
	if parent.Style&yaml.FlowStyle != 0 || len(parent.Content) == 0 {
		return false
	}
	if key == nil {
		return true
	}
	text := lines[key.Line-1]
	if parent.Kind == yaml.SequenceNode {
		return strings.HasPrefix(strings.TrimSpace(text), "-")
	}
	return form.Depth(text) == key.Column-1
}

// depthBelow returns how far the keys or elements of a value are indented.
func depthBelow(lines []string, parent *yaml.Node) int {
	if parent.Kind == yaml.SequenceNode {
		return form.Depth(lines[parent.Content[0].Line-1])
	}
	return parent.Content[0].Column - 1
}

// above returns the number of lines that stay above a new key or element. A new key is put below the nearest key that
// precedes it in the other file and exists in the learner's, or else at the end of the mapping. A new element is always
// put at the end of the list.
func above(lines []string, parent, otherParent *yaml.Node, step any) int {
	last := parent.Content[len(parent.Content)-1]
	if parent.Kind == yaml.SequenceNode {
		return form.LastLine(lines, last.Line)
	}
	follows := parent.Content[len(parent.Content)-2]
	for i := 0; i < len(otherParent.Content) && otherParent.Content[i].Value != step; i += 2 {
		if key, _ := child(parent, otherParent.Content[i].Value); key != nil {
			follows = key
		}
	}
	if form.Depth(lines[follows.Line-1]) < follows.Column-1 {
		// The key is on the first line of a list element, so LastLine would return the end of the whole element.
		return max(follows.Line, lastOf(parent, follows))
	}
	return form.LastLine(lines, follows.Line)
}

// lastOf returns the line on which the last part of a key's value begins.
func lastOf(parent, key *yaml.Node) int {
	_, value := child(parent, key.Value)
	last := value.Line
	for node := value; len(node.Content) > 0; {
		node = node.Content[len(node.Content)-1]
		last = node.Line
	}
	return last
}

func commentAt(line string, indentation int) bool {
	return strings.HasPrefix(strings.TrimSpace(line), "#") && form.Depth(line) == indentation
}

// shifted returns the lines, with their indentation changed by the difference of two depths.
func shifted(lines []string, from, to int) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		if strings.TrimSpace(line) != "" {
			all[i] = strings.Repeat(" ", max(0, form.Depth(line)-from+to)) + strings.TrimLeft(line, " ")
		}
	}
	return all
}

var stepComment = regexp.MustCompile(`^# Step [0-9]`)

// withoutStepComments returns theirs without the comments about missing code that are in before and not in after.
func withoutStepComments(theirs, before, after []byte) []byte {
	comments := func(source []byte) (all []string) {
		for line := range strings.Lines(string(source)) {
			if text := strings.TrimSpace(line); stepComment.MatchString(text) {
				all = append(all, text)
			}
		}
		return all
	}
	gone, left := comments(before), comments(after)
	var kept strings.Builder
	for line := range strings.Lines(string(theirs)) {
		if text := strings.TrimSpace(line); !slices.Contains(gone, text) || slices.Contains(left, text) {
			kept.WriteString(line)
		}
	}
	return []byte(kept.String())
}

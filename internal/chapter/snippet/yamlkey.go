package snippet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// keyPart matches one part of a key: .name (the first without the dot), ["name"] or [index].
var keyPart = regexp.MustCompile(`^(?:\.?([^.\[\]"]+)|\["([^"]*)"\]|\[([0-9]+)\])`)

// place is where a subtree starts in a file. Lines and columns count from 1; the column is that of the key, or of an
// item's dash.
type place struct {
	line, column int
	sequence     bool // the value of a key is a sequence, whose dashes may be in the key's own column
}

// cutKey returns a key of a YAML file with its value, or an item of a sequence, with the comments directly above it. It
// moves the lines to the left, so that the key or the item's dash is in the first column. It uses the first document
// that has the key.
func cutKey(source []byte, key string) (string, error) {
	lines := strings.Split(strings.ReplaceAll(string(source), "\r\n", "\n"), "\n")
	decoder := yaml.NewDecoder(bytes.NewReader(source))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return "", errMissing("key " + key)
		}
		if err != nil {
			return "", fmt.Errorf("parse YAML: %w", err)
		}
		at, found, err := findKey(&document, lines, key)
		if err != nil {
			return "", err
		}
		if found {
			return strings.Join(cutLines(lines, at), "\n"), nil
		}
	}
}

// findKey walks from the root of a document along the parts of key.
func findKey(document *yaml.Node, lines []string, key string) (at place, found bool, err error) {
	if len(document.Content) == 0 {
		return at, false, nil
	}
	node := document.Content[0]
	for rest := key; rest != ""; {
		m := keyPart.FindStringSubmatch(rest)
		if m == nil {
			return at, false, fmt.Errorf(`can't read the key %s at %s: write it as spec.versions[0].name or metadata.labels["a.b/c"]`, key, rest)
		}
		rest = rest[len(m[0]):]
		if node.Style&yaml.FlowStyle != 0 {
			return at, false, fmt.Errorf("can't cut %s from the braces or brackets in line %d: write them as a block", key, node.Line)
		}
		if m[3] == "" {
			at, node = mapEntry(node, m[1]+m[2])
		} else if at, node, err = sequenceItem(node, lines, m[3]); err != nil {
			return at, false, err
		}
		if node == nil {
			return at, false, nil
		}
	}
	return at, true, nil
}

func mapEntry(node *yaml.Node, name string) (place, *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		return place{}, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Value == name {
			return place{line: key.Line, column: key.Column, sequence: value.Kind == yaml.SequenceNode}, value
		}
	}
	return place{}, nil
}

func sequenceItem(node *yaml.Node, lines []string, index string) (place, *yaml.Node, error) {
	i, err := strconv.Atoi(index)
	if err != nil || node.Kind != yaml.SequenceNode || i >= len(node.Content) {
		return place{}, nil, nil
	}
	item := node.Content[i]
	line := lines[min(item.Line, len(lines))-1]
	dash := strings.LastIndexByte(line[:min(item.Column-1, len(line))], '-')
	if dash < 0 {
		return place{}, nil, fmt.Errorf("can't cut item %d in line %d: it must start on the line of its dash", i, item.Line)
	}
	return place{line: item.Line, column: dash + 1}, item, nil
}

// cutLines cuts by indentation, so that comments and formatting stay as the author wrote them.
func cutLines(lines []string, at place) []string {
	indent := at.column - 1
	first := at.line - 1
	cut := []string{lines[first][indent:]}
	for _, line := range lines[first+1:] {
		if strings.TrimSpace(line) != "" && !at.contains(line) {
			break
		}
		cut = append(cut, line[min(indent, indentOf(line)):])
	}
	// Blank lines and comments at the end belong to what follows, except comments indented deeper than the key or dash.
	for last := cut[len(cut)-1]; strings.TrimSpace(last) == "" || last[0] == '#'; last = cut[len(cut)-1] {
		cut = cut[:len(cut)-1]
	}
	if strings.TrimSpace(lines[first][:indent]) != "" {
		return cut
	}
	for i := first - 1; i >= 0 && indentOf(lines[i]) == indent && strings.HasPrefix(lines[i][indent:], "#"); i-- {
		cut = append([]string{lines[i][indent:]}, cut...)
	}
	return cut
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// contains reports whether a line after the first belongs to the subtree. The line must not be blank.
func (p place) contains(line string) bool {
	depth := indentOf(line) + 1
	text := line[depth-1:]
	switch {
	case text[0] == '#': // a comment may have any indentation
		return true
	case depth != p.column:
		return depth > p.column
	default:
		return p.sequence && (text == "-" || strings.HasPrefix(text, "- "))
	}
}

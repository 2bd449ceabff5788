package snippet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const goSource = `// Package p is an example.
package p

import "fmt"

// Loose is not a doc comment.

// Hello greets.
//
//workshop:step 1.2 task
func Hello(name string) {
	// why
	fmt.Println("hello " + name)
}

// Set is a set.
type Set[T comparable] struct {
	items map[T]bool // what is in it
}

// Has tells what is in it.
func (s *Set[T]) Has(item T) bool { return s.items[item] }

// Swap swaps.
//
// Twice is none.
func (Pair[A, B]) Swap() {}

type (
	// Pair is two.
	Pair[A, B any] struct{}

	ID   = string // short
	Rest int
)

// Reasons of conditions.
const (
	// ReasonReady is good.
	ReasonReady     = "Ready"
	ReasonNotReady1 = "NotReady" // bad
)

const (
	Zero = iota
	One
)

// Limit and Burst are numbers.
var Limit, Burst = 1, 2 // both
`

func TestCutSymbol(t *testing.T) {
	tests := map[string]struct{ name, want string }{
		"a function with its doc comment":             {"Hello", "// Hello greets.\n//\n//workshop:step 1.2 task\nfunc Hello(name string) {\n\t// why\n\tfmt.Println(\"hello \" + name)\n}"},
		"a type":                                      {"Set", "// Set is a set.\ntype Set[T comparable] struct {\n\titems map[T]bool // what is in it\n}"},
		"a method":                                    {"Set.Has", "// Has tells what is in it.\nfunc (s *Set[T]) Has(item T) bool { return s.items[item] }"},
		"a method of a type with two parameters":      {"Pair.Swap", "// Swap swaps.\n//\n// Twice is none.\nfunc (Pair[A, B]) Swap() {}"},
		"a type in a group":                           {"Pair", "// Pair is two.\ntype Pair[A, B any] struct{}"},
		"a type in a group, with its comment":         {"ID", "type ID = string // short"},
		"a type in a group, without a comment":        {"Rest", "type Rest int"},
		"a constant in a group":                       {"ReasonReady", "// ReasonReady is good.\nconst ReasonReady = \"Ready\""},
		"a constant with its comment":                 {"ReasonNotReady1", "const ReasonNotReady1 = \"NotReady\" // bad"},
		"a constant whose value depends on its place": {"One", "const (\n\tZero = iota\n\tOne\n)"},
		"a variable, the second of two":               {"Burst", "// Limit and Burst are numbers.\nvar Limit, Burst = 1, 2 // both"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := cutSymbol([]byte(goSource), test.name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
		})
	}
	t.Run("a symbol that is not there", func(t *testing.T) {
		_, err := cutSymbol([]byte(goSource), "Has")
		NewWithT(t).Expect(err).To(MatchError("has no symbol Has"))
	})
	t.Run("a file that is not Go", func(t *testing.T) {
		_, err := cutSymbol([]byte("no"), "Has")
		NewWithT(t).Expect(err).To(MatchError(HavePrefix("parse Go: 1:1: ")))
	})
}

const yamlSource = `# license
apiVersion: v1
metadata:
  name: a

  # the labels
  # of this object
  labels:
    a.b/c: "1" # one
# left of everything
    d: |
      # text
       more

  # what follows
  annotations: {}
spec:
  versions:
  # first
  - name: v1
    # the schema
    schema:
      type: object
      # the end

  # second
  - name: v2
    schema: {type: object}
  - - x
    - y
  - # far
    name: v3
---
other:
- 1
- 2
# the end
`

func TestCutKey(t *testing.T) {
	tests := map[string]struct{ key, want string }{
		"a scalar":                         {"metadata.name", "name: a"},
		"a map with the comments above it": {"metadata.labels", "# the labels\n# of this object\nlabels:\n  a.b/c: \"1\" # one\n# left of everything\n  d: |\n    # text\n     more"},
		"a key with dots":                  {`metadata.labels["a.b/c"]`, `a.b/c: "1" # one`},
		"a block of text below a comment":  {"metadata.labels.d", "d: |\n  # text\n   more"},
		"a key of an item":                 {"spec.versions[0].schema", "# the schema\nschema:\n  type: object\n  # the end"},
		"the first key of an item":         {"spec.versions[1].name", "name: v2"},
		"an item":                          {"spec.versions[0]", "# first\n- name: v1\n  # the schema\n  schema:\n    type: object\n    # the end"},
		"a value in braces":                {"spec.versions[1].schema", "schema: {type: object}"},
		"an item of an item":               {"spec.versions[2][0]", "- x"},
		"the last item of an item":         {"spec.versions[2][1]", "- y"},
		"a key of a later document":        {"other", "other:\n- 1\n- 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := cutKey([]byte(yamlSource), test.key)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
		})
	}
	for key, want := range map[string]string{
		"nothing":                      "has no key nothing",
		"apiVersion.a":                 "has no key apiVersion.a",
		"spec.versions[9]":             "has no key spec.versions[9]",
		"metadata[0]":                  "has no key metadata[0]",
		"spec.versions[1].schema.type": "can't cut spec.versions[1].schema.type from the braces or brackets in line 28: write them as a block",
		"spec.versions[3]":             "can't cut item 3 in line 32: it must start on the line of its dash",
		"spec..a":                      `can't read the key spec..a at ..a: write it as spec.versions[0].name or metadata.labels["a.b/c"]`,
	} {
		t.Run(key, func(t *testing.T) {
			_, err := cutKey([]byte(yamlSource), key)
			NewWithT(t).Expect(err).To(MatchError(want))
		})
	}
	t.Run("a file that is not YAML", func(t *testing.T) {
		_, err := cutKey([]byte("a: ["), "a")
		NewWithT(t).Expect(err).To(MatchError(HavePrefix("parse YAML: ")))
	})
	t.Run("documents without content", func(t *testing.T) {
		_, err := cutKey([]byte("---\n---\n"), "a")
		NewWithT(t).Expect(err).To(MatchError("has no key a"))
	})
	t.Run("a key below a blank line", func(t *testing.T) {
		NewWithT(t).Expect(cutKey([]byte("a: 1\n\nb: 2\n"), "b")).To(Equal("b: 2"))
	})
}

// repository makes a folder with sources and a chapter, and returns its path and the chapter's.
func repository(t *testing.T, chapter string) (root, path string) {
	g := NewWithT(t)
	root = t.TempDir()
	path = filepath.Join(root, "c.md")
	for name, text := range map[string]string{"c.md": chapter, "p/p.go": goSource, "p.yaml": yamlSource, "docs/1-p.md": "# P\n", "01-p/p.go": steppedSource, "01-p/exercises.yaml": stepsSource, "01-p/go.mod": "module example.com/operator-workshop/01-p\n",
		"go.work": "go 1.26.0\n\nuse ./01-p\n", "Makefile": "a:\n\tb\n\n```\n"} {
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(root, name), []byte(text), 0o600)).To(Succeed())
	}
	return root, path
}

func TestFillAndCheck(t *testing.T) {
	const stale = "# A\n\n```go file=p/p.go symbol=Rest\n```\n\n1. B\n\n   ````makefile file=Makefile\n   old\n   ````\n\n```go\nleft\n```\n" +
		"```yaml file=p.yaml key=metadata.labels[\"a.b/c\"]\nold\nlines\n```\nend"
	const filled = "# A\n\n```go file=p/p.go symbol=Rest\ntype Rest int\n```\n\n1. B\n\n   ````makefile file=Makefile\n   a:\n   \tb\n\n   ```\n   ````\n\n```go\nleft\n```\n" +
		"```yaml file=p.yaml key=metadata.labels[\"a.b/c\"]\na.b/c: \"1\" # one\n```\nend"
	for name, newline := range map[string]string{"LF": "\n", "CRLF": "\r\n"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			root, path := repository(t, strings.ReplaceAll(stale, "\n", newline))
			const makeGenerate = "; run `make generate`\n"
			g.Expect(Check(root, path)).To(MatchError(
				path + ":3: this is not what p/p.go at Rest says" + makeGenerate + "    + type Rest int\n" +
					path + ":8: this is not what Makefile says" + makeGenerate + "    - old\n    + a:\n    + \tb\n    +\n    + ```\n" +
					path + ":15: this is not what p.yaml at metadata.labels[\"a.b/c\"] says" + makeGenerate + "    - old\n    - lines\n    + a.b/c: \"1\" # one"))
			changed, err := Fill(root, path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(changed).To(BeTrue())
			text, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(text)).To(Equal(strings.ReplaceAll(filled, "\n", newline)))
			g.Expect(Check(root, path)).To(Succeed())
			g.Expect(Fill(root, path)).To(BeFalse())
		})
	}
}

func TestFillNamesWhatCanNotBeCut(t *testing.T) {
	tests := map[string]struct{ fence, want string }{
		"a missing file":             {"```go file=p/q.go symbol=A\n```\n", "file=p/q.go: there is no such file"},
		"a missing symbol":           {"```go file=p/p.go symbol=A\n```\n", "file=p/p.go: has no symbol A"},
		"a missing key":              {"```yaml file=p.yaml key=a\n```\n", "file=p.yaml: has no key a"},
		"a folder":                   {"```text file=p\n```\n", "file=p: read "},
		"a line that closes a fence": {"```makefile file=Makefile\n```\n", "file=Makefile: a line of it would close this fence: make the fence longer than ```"},
		"a mistake in another fence": {"```sh\n```\n", "a sh fence would not be played"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := "```go file=p/p.go symbol=Rest\n```\n" + test.fence
			root, path := repository(t, text)
			changed, err := Fill(root, path)
			g.Expect(changed).To(BeFalse())
			g.Expect(err).To(MatchError(HavePrefix(path + ":3: " + test.want)))
			g.Expect(Check(root, path)).To(MatchError(ContainSubstring(path + ":3: " + test.want)))
			left, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(left)).To(Equal(text))
		})
	}
}

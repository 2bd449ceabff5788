package exercise

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Unstepped lists tests of a stage that check no step, and says why.
type Unstepped struct {
	// Files are files that contain such tests. They may also contain tests that a step's check runs.
	Files []string `json:"files,omitempty"`
	// Tests are names of Go tests and texts of specs. A spec's text begins with the texts of its containers.
	Tests []string `json:"tests,omitempty"`
	// Reason is a sentence such as "They test code that comes with the copy."
	Reason string `json:"reason"`
}

// deployed is the folder with the tests of a deployed operator, which belong to no step.
const deployed = "test/e2e"

// suiteTest is a stage's Go test or Ginkgo spec. A spec's name is its text.
type suiteTest struct {
	file, name string
	spec       bool
}

// tests returns the tests of the finished stage, except those of a deployed operator. They are sorted by file.
func (s *Stage) tests() ([]suiteTest, error) {
	files, err := s.Form(len(s.Steps))
	if err != nil {
		return nil, err
	}
	var all []suiteTest
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !isTest(name) || path.Dir(name) == deployed {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, files[name].content, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read the tests of stage %d: %w", s.Number, err)
		}
		for _, found := range testsIn(parsed) {
			found.file = name
			all = append(all, found)
		}
	}
	return all, nil
}

func testsIn(file *ast.File) (found []suiteTest) {
	for _, declared := range file.Decls {
		switch declared := declared.(type) {
		case *ast.FuncDecl:
			if name := declared.Name.Name; declared.Recv == nil && strings.HasPrefix(name, "Test") && name != "TestMain" {
				found = append(found, suiteTest{name: name})
			}
		case *ast.GenDecl:
			for _, spec := range declared.Specs {
				if values, is := spec.(*ast.ValueSpec); is && len(values.Values) == 1 {
					found = append(found, specsIn(values.Values[0], "")...)
				}
			}
		}
	}
	return found
}

// specsIn returns the specs that a call to Ginkgo's Describe, It or a similar function declares. A table counts as one
// spec.
func specsIn(node ast.Node, container string) (found []suiteTest) {
	call, is := node.(*ast.CallExpr)
	if !is || len(call.Args) < 2 {
		return nil
	}
	called, is := call.Fun.(*ast.Ident)
	if !is {
		return nil
	}
	text := strings.TrimSpace(container + " " + literal(call.Args[0]))
	switch called.Name {
	case "It", "Specify", "DescribeTable":
		return []suiteTest{{name: strings.TrimSuffix(text, ":"), spec: true}}
	case "Describe", "Context", "When":
		for _, arg := range call.Args {
			if body, is := arg.(*ast.FuncLit); is {
				for _, statement := range body.Body.List {
					if expression, is := statement.(*ast.ExprStmt); is {
						found = append(found, specsIn(expression.X, text)...)
					}
				}
			}
		}
	}
	return found
}

// literal returns the text of a string expression, with an ellipsis for parts that are not literals.
func literal(node ast.Expr) string {
	switch node := node.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(node.Value); err == nil {
			return text
		}
	case *ast.BinaryExpr:
		return literal(node.X) + literal(node.Y)
	}
	return "…"
}

// selects reports whether a check runs a test, or a part of it.
func (c Check) selects(test suiteTest) (bool, error) {
	if path.Clean(cmp.Or(c.Package, ".")) != path.Dir(test.file) {
		return false, nil
	}
	if test.spec {
		if c.Specs == "" {
			return false, nil // labels select specs of the test kit
		}
		return regexp.MatchString(c.Specs, test.name)
	}
	// As in `go test -run`, the expression consists of alternatives whose elements are separated by slashes.
	for _, alternative := range splitOutside(c.Run, '|') {
		matches, err := regexp.MatchString(splitOutside(alternative, '/')[0], test.name)
		if matches || err != nil {
			return matches, err
		}
	}
	return false, nil
}

// unmatched returns the alternatives of the check's pattern that match nothing that ran. The pattern is Specs if
// specs ran, and Run otherwise.
func (c Check) unmatched(found outcome) ([]string, error) {
	pattern := c.Run
	if found.reported {
		pattern = c.Specs
	}
	var idle []string
	for _, alternative := range alternatives(pattern) {
		elements := []string{alternative}
		if !found.reported {
			elements = splitOutside(alternative, '/')
		}
		var compiled []*regexp.Regexp
		for _, element := range elements {
			expression, err := regexp.Compile(element)
			if err != nil {
				return nil, err
			}
			compiled = append(compiled, expression)
		}
		matches := func(name string) bool {
			parts := []string{name}
			if !found.reported {
				parts = strings.Split(name, "/")
			}
			for i, expression := range compiled {
				if i >= len(parts) || !expression.MatchString(parts[i]) {
					return false
				}
			}
			return true
		}
		if !slices.ContainsFunc(found.tests, matches) {
			idle = append(idle, alternative)
		}
	}
	return idle, nil
}

// alternatives returns one regular expression for each alternative in an expression: "a(b|c)" becomes "a(b)" and "a(c)".
// If there are several groups, it replaces one at a time, and keeps the others.
func alternatives(expression string) (all []string) {
	if parts := splitOutside(expression, '|'); len(parts) > 1 {
		for _, part := range parts {
			all = append(all, alternatives(part)...)
		}
		return all
	}
	depth, from := 0, 0
	for at, letter := range expression {
		switch letter {
		case '(':
			if depth++; depth == 1 {
				from = at + 1
			}
		case ')':
			if depth--; depth > 0 {
				continue
			}
			if inner := alternatives(expression[from:at]); len(inner) > 1 {
				for _, alternative := range inner {
					all = append(all, expression[:from]+alternative+expression[at:])
				}
			}
		}
	}
	if len(all) == 0 {
		return []string{expression}
	}
	return all
}

// splitOutside splits a regular expression at each separator that is not in brackets.
func splitOutside(expression string, separator rune) (parts []string) {
	depth, from := 0, 0
	for at, letter := range expression {
		switch {
		case strings.ContainsRune("([", letter):
			depth++
		case strings.ContainsRune(")]", letter):
			depth--
		case letter == separator && depth == 0:
			parts, from = append(parts, expression[from:at]), at+1
		}
	}
	return append(parts, expression[from:])
}

func (s *Stage) checkedBy(step Step, tests []suiteTest) ([]suiteTest, error) {
	var selected []suiteTest
	for _, test := range tests {
		for _, check := range step.Checks {
			runs, err := check.selects(test)
			if err != nil {
				return nil, fmt.Errorf("step %s: %w", step.ID, err)
			}
			if runs {
				selected = append(selected, test)
				break
			}
		}
	}
	return selected, nil
}

// CheckCoverage returns an error if a test of the stage checks no step and is not listed as Unstepped, or if that list
// names a test or a file that does not exist, or a test that checks a step.
func (s *Stage) CheckCoverage() error {
	tests, err := s.tests()
	if err != nil {
		return err
	}
	reasons := map[string]string{} // by test or file
	for _, group := range s.Unstepped {
		for _, name := range slices.Concat(group.Tests, group.Files) {
			reasons[name] = group.Reason
		}
	}
	stepped, exist := map[string]bool{}, map[string]bool{}
	for _, step := range s.Steps {
		selected, err := s.checkedBy(step, tests)
		if err != nil {
			return err
		}
		for _, test := range selected {
			stepped[test.name] = true
		}
	}
	var problems []error
	for _, test := range tests {
		exist[test.name], exist[test.file] = true, true
		if reasons[test.name] == "" && reasons[test.file] == "" && !stepped[test.name] {
			problems = append(problems, fmt.Errorf("%s: no step's check runs %q of %s: add it to a check, or to unstepped with a reason", FileName, test.name, test.file))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		switch {
		case !exist[name]:
			problems = append(problems, fmt.Errorf("%s: unstepped names %q, which is neither a test of the stage nor a file with tests", FileName, name))
		case stepped[name]:
			problems = append(problems, fmt.Errorf("%s: unstepped names %q, which a step's check runs", FileName, name))
		}
	}
	return errors.Join(problems...)
}

package form

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// goFile is a Go file from which a form is derived.
type goFile struct {
	*lines
	set    *token.FileSet
	syntax *ast.File
	steps  Steps
	// covered contains the lines that an outer mark has already removed.
	covered map[int]bool
}

func deriveGo(name string, source []byte, steps Steps) (derived []byte, exists bool, err error) {
	f := &goFile{lines: newLines(source), set: token.NewFileSet(), steps: steps, covered: map[int]bool{}}
	f.syntax, err = parser.ParseFile(f.set, name, source, parser.ParseComments)
	if err != nil {
		return nil, false, err
	}
	for _, group := range f.syntax.Comments {
		for _, comment := range group.List {
			marked, err := parseMark(strings.TrimPrefix(comment.Text, "//"), steps)
			if err == nil && marked != nil && marked.word == "file" && marked.pending {
				return nil, false, nil
			}
			if err == nil && marked != nil && !f.covered[f.line(comment.Pos())] {
				err = f.apply(marked, group, comment)
			}
			if err != nil {
				return nil, false, fmt.Errorf("line %d: %w", f.line(comment.Pos()), err)
			}
		}
	}
	pruned, err := PruneImports(name, []byte(f.String()))
	if err != nil {
		return nil, false, err
	}
	derived, err = format.Source(pruned)
	return derived, true, err
}

func (f *goFile) line(pos token.Pos) int { return f.set.Position(pos).Line }

// apply does what a mark says, and removes the mark.
func (f *goFile) apply(marked *mark, group *ast.CommentGroup, comment *ast.Comment) error {
	at := f.line(comment.Pos())
	code := strings.TrimSpace(f.text[at-1][:f.set.Position(comment.Pos()).Column-1])
	switch {
	case code != "": // at the end of a line
		if marked.word != "step" {
			return fmt.Errorf("workshop:%s belongs on a line of its own", marked.word)
		}
		if marked.pending {
			f.cover(at, at)
		} else {
			f.put(at, strings.TrimRight(f.text[at-1][:f.set.Position(comment.Pos()).Column-1], " \t"))
		}
		return nil
	case !marked.pending, marked.word == "file":
		f.drop(at, at)
		return nil
	case marked.word == "until":
		f.put(at, f.indentation(at)+marked.text)
		return nil
	case marked.word == "markers":
		f.drop(at, at)
		for _, other := range group.List {
			if line := f.line(other.Pos()); concernsMarker(marked, strings.TrimLeft(other.Text, "/ "), line > at) {
				f.drop(line, line)
			}
		}
		return nil
	}
	return f.takeOut(marked, group, at)
}

// concernsMarker reports whether a mark workshop:markers applies to a line of its comment. Without words, the mark applies
// to the lines below it that begin with a plus sign. With words, it applies to all lines that begin with one of them.
func concernsMarker(marked *mark, line string, below bool) bool {
	if marked.text == "" {
		return below && strings.HasPrefix(line, "+")
	}
	return slices.ContainsFunc(strings.Fields(marked.text), func(word string) bool { return strings.HasPrefix(line, word) })
}

// takeOut removes the code that a mark on a line of its own applies to. If the mark has text, a comment with that text
// takes the place of the code. For a function, takeOut replaces only the body (see stub).
func (f *goFile) takeOut(marked *mark, group *ast.CommentGroup, at int) error {
	node := f.below(group, at)
	if node == nil {
		return fmt.Errorf("expected a declaration, a field, a statement, a case or an element on lines of its own below workshop:step %s", marked.step)
	}
	if function, is := node.(*ast.FuncDecl); is {
		f.drop(at, at)
		return f.stub(marked, function)
	}
	first := at
	if doc := docOf(node); doc != nil {
		first = f.line(doc.Pos())
	}
	f.cover(first, f.line(node.End()))
	if marked.text != "" {
		f.put(first, f.indentation(at)+"// Step "+marked.step+": "+marked.text)
	}
	return nil
}

// cover removes lines, and makes deriveGo ignore the marks in them.
func (f *goFile) cover(first, last int) {
	f.drop(first, last)
	for line := first; line <= last; line++ {
		f.covered[line] = true
	}
}

// stub replaces a function's body with a comment and, if the function has results, a return of zero values.
func (f *goFile) stub(marked *mark, function *ast.FuncDecl) error {
	if function.Body == nil {
		return fmt.Errorf("function %s has no body", function.Name.Name)
	}
	for _, group := range f.syntax.Comments {
		for _, comment := range group.List {
			inner, err := parseMark(strings.TrimPrefix(comment.Text, "//"), f.steps)
			inBody := function.Body.Lbrace < comment.Pos() && comment.Pos() < function.Body.Rbrace
			if inBody && err == nil && inner != nil && inner.word == "until" && inner.step == marked.step {
				return fmt.Errorf("workshop:until %s has no effect on line %d, because workshop:step %s replaces the whole body", marked.step, f.line(comment.Pos()), marked.step)
			}
		}
	}
	body := "\t// Your turn, step " + marked.step + ": " + f.steps.Title(marked.step) + "."
	if results := zeroResults(f.source, function.Type.Results); results != "" {
		body += "\n\t" + results
	}
	first, last := f.line(function.Body.Lbrace), f.line(function.Body.Rbrace)
	f.cover(first, last)
	signature := f.text[first-1][:f.set.Position(function.Body.Lbrace).Column]
	f.put(first, signature+"\n"+body+"\n}")
	return nil
}

// source returns the text of a node.
func (f *goFile) source(node ast.Node) string {
	first, last := f.set.Position(node.Pos()), f.set.Position(node.End())
	if first.Line != last.Line {
		return strings.Join(append(append([]string{f.text[first.Line-1][first.Column-1:]}, f.text[first.Line:last.Line-1]...), f.text[last.Line-1][:last.Column-1]), "\n")
	}
	return f.text[first.Line-1][first.Column-1 : last.Column-1]
}

// zeroResults returns a statement that returns zero values, or "" if the function has no results.
func zeroResults(source func(ast.Node) string, results *ast.FieldList) string {
	if results.NumFields() == 0 {
		return ""
	}
	var values []string
	for _, result := range results.List {
		if len(result.Names) > 0 {
			return "return"
		}
		values = append(values, zero(source, result.Type))
	}
	return "return " + strings.Join(values, ", ")
}

func zero(source func(ast.Node) string, kind ast.Expr) string {
	text := source(kind)
	switch kind := kind.(type) {
	case *ast.StarExpr, *ast.MapType, *ast.ChanType, *ast.FuncType, *ast.InterfaceType:
		return "nil"
	case *ast.ArrayType:
		if kind.Len == nil {
			return "nil"
		}
	case *ast.Ident, *ast.SelectorExpr:
		switch text {
		case "error", "any", "context.Context":
			return "nil"
		case "ctrl.Result", "metav1.Condition":
			return text + "{}"
		case "string":
			return `""`
		case "bool":
			return "false"
		case "int", "int32", "int64", "uint", "uint32", "uint64", "float64", "byte", "rune":
			return "0"
		}
	}
	return "*new(" + text + ")"
}

// below returns the outermost node that a mark on a line of its own can apply to: one with the mark in its doc comment,
// or one that begins on the next line that is not a comment.
func (f *goFile) below(group *ast.CommentGroup, at int) ast.Node {
	next := at + 1
	for next <= len(f.text) && strings.HasPrefix(strings.TrimSpace(f.text[next-1]), "//") {
		next++
	}
	var found ast.Node
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		if node == nil || found != nil {
			return false
		}
		switch node := node.(type) {
		case *ast.Comment, *ast.CommentGroup:
			return false
		case *ast.FuncDecl, *ast.GenDecl, *ast.Field, *ast.ValueSpec, *ast.TypeSpec, ast.Stmt, ast.Expr:
			if _, is := node.(*ast.BlockStmt); is {
				return true
			}
			if docOf(node) == group || f.line(node.Pos()) == next && f.startsLine(node) {
				found = node
				return false
			}
		}
		return true
	})
	return found
}

// startsLine reports whether only white space precedes a node.
func (f *goFile) startsLine(node ast.Node) bool {
	position := f.set.Position(node.Pos())
	return strings.TrimSpace(f.text[position.Line-1][:position.Column-1]) == ""
}

// docOf returns the comment that documents a declaration or a field, or nil if there is none.
func docOf(node ast.Node) *ast.CommentGroup {
	switch node := node.(type) {
	case *ast.FuncDecl:
		return node.Doc
	case *ast.GenDecl:
		return node.Doc
	case *ast.Field:
		return node.Doc
	case *ast.ValueSpec:
		return node.Doc
	case *ast.TypeSpec:
		return node.Doc
	}
	return nil
}

package chapter

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strings"
)

// cutSymbol returns the source of a symbol with its doc comment, gofmt'ed. The name of a method is Type.Method.
func cutSymbol(source []byte, name string) (string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", fmt.Errorf("parse Go: %w", err)
	}
	text := func(start, end token.Pos) string {
		return string(source[files.Position(start).Offset:files.Position(end).Offset])
	}
	for _, decl := range file.Decls {
		cut := ""
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if funcName(decl) == name {
				cut = text(startOf(decl, decl.Doc), decl.End())
			}
		case *ast.GenDecl:
			cut = cutSpec(decl, name, text)
		}
		if cut == "" {
			continue
		}
		// With a line of its own for the package: else gofmt takes the first line of the comment for another comment.
		formatted, err := format.Source([]byte("package p\n\n" + cut))
		if err != nil {
			return "", fmt.Errorf("format %s: %w", name, err)
		}
		return strings.TrimSpace(strings.TrimPrefix(string(formatted), "package p\n")), nil
	}
	return "", fmt.Errorf("has no symbol %s", name)
}

func funcName(decl *ast.FuncDecl) string {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return decl.Name.Name
	}
	receiver := decl.Recv.List[0].Type
	for {
		switch typ := receiver.(type) {
		case *ast.StarExpr:
			receiver = typ.X
		case *ast.IndexExpr:
			receiver = typ.X
		case *ast.IndexListExpr:
			receiver = typ.X
		case *ast.Ident:
			return typ.Name + "." + decl.Name.Name
		default:
			return ""
		}
	}
}

// startOf is where a node starts, with its doc comment if it has one.
func startOf(node ast.Node, doc *ast.CommentGroup) token.Pos {
	if doc != nil {
		return doc.Pos()
	}
	return node.Pos()
}

// cutSpec returns the source of a type, constant or variable. One from a group in parentheses is made to stand alone,
// unless its value depends on its place in the group: then it is the whole group.
func cutSpec(decl *ast.GenDecl, name string, text func(start, end token.Pos) string) string {
	for _, spec := range decl.Specs {
		if !declares(spec, name) {
			continue
		}
		doc, comment := specComments(spec)
		end := spec.End()
		if comment != nil {
			end = comment.End()
		}
		switch {
		case !decl.Lparen.IsValid():
			return text(startOf(decl, decl.Doc), end)
		case decl.Tok == token.CONST && usesPlace(decl):
			return text(startOf(decl, decl.Doc), decl.End())
		}
		cut := decl.Tok.String() + " " + text(spec.Pos(), end)
		if doc != nil {
			cut = text(doc.Pos(), doc.End()) + "\n" + cut
		}
		return cut
	}
	return ""
}

func declares(spec ast.Spec, name string) bool {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return spec.Name.Name == name
	case *ast.ValueSpec:
		for _, ident := range spec.Names {
			if ident.Name == name {
				return true
			}
		}
	}
	return false
}

func specComments(spec ast.Spec) (doc, comment *ast.CommentGroup) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return spec.Doc, spec.Comment
	case *ast.ValueSpec:
		return spec.Doc, spec.Comment
	}
	return nil, nil
}

// usesPlace tells whether a group of constants counts with iota or repeats values silently.
func usesPlace(decl *ast.GenDecl) bool {
	found := false
	ast.Inspect(decl, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ValueSpec:
			found = found || len(node.Values) == 0
		case *ast.Ident:
			found = found || node.Name == "iota"
		}
		return !found
	})
	return found
}

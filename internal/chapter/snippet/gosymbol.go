package snippet

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"strings"
)

// cutSymbol returns the source of a symbol with its doc comment, formatted as by gofmt. A method's name is Type.Method.
func cutSymbol(source []byte, name string) (string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", fmt.Errorf("parse Go: %w", err)
	}
	for _, decl := range file.Decls {
		found := false
		switch typed := decl.(type) {
		case *ast.FuncDecl:
			found = funcName(typed) == name
		case *ast.GenDecl:
			decl, found = cutSpec(typed, name)
		}
		if !found {
			continue
		}
		var text strings.Builder
		if err := format.Node(&text, files, &printer.CommentedNode{Node: decl, Comments: file.Comments}); err != nil {
			return "", fmt.Errorf("format %s: %w", name, err)
		}
		return strings.TrimSpace(text.String()), nil
	}
	return "", errMissing("symbol " + name)
}

// funcName returns the name of a function, or Type.Method without pointers and type parameters.
func funcName(decl *ast.FuncDecl) string {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return decl.Name.Name
	}
	receiver, _, _ := strings.Cut(types.ExprString(decl.Recv.List[0].Type), "[")
	return strings.TrimPrefix(receiver, "*") + "." + decl.Name.Name
}

// cutSpec returns the declaration of a type, constant or variable. From a group in parentheses, it returns only this
// declaration or, if the group's constants depend on their positions, the whole group.
func cutSpec(decl *ast.GenDecl, name string) (alone *ast.GenDecl, found bool) {
	for _, spec := range decl.Specs {
		var names []*ast.Ident
		var doc *ast.CommentGroup
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			names, doc = []*ast.Ident{spec.Name}, spec.Doc
		case *ast.ValueSpec:
			names, doc = spec.Names, spec.Doc
		}
		for _, each := range names {
			if each.Name != name {
				continue
			}
			if !decl.Lparen.IsValid() || decl.Tok == token.CONST && usesPlace(decl) {
				return decl, true
			}
			return &ast.GenDecl{Doc: doc, TokPos: spec.Pos(), Tok: decl.Tok, Specs: []ast.Spec{spec}}, true
		}
	}
	return nil, false
}

// usesPlace reports whether a group of constants uses iota or repeats values implicitly.
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

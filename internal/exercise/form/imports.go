package form

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// PruneImports removes the imports that a file does not use.
func PruneImports(name string, source []byte) ([]byte, error) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, name, source, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("the form is not valid Go code: %w", err)
	}
	used := map[string]bool{}
	ast.Inspect(syntax, func(node ast.Node) bool {
		if selector, is := node.(*ast.SelectorExpr); is {
			// The parser has resolved names that are declared in this file, such as a variable with a package's name.
			if pkg, is := selector.X.(*ast.Ident); is && pkg.Obj == nil {
				used[pkg.Name] = true
			}
		}
		return true
	})
	file := newLines(source)
	for _, declaration := range syntax.Decls {
		imports, is := declaration.(*ast.GenDecl)
		if !is || imports.Tok != token.IMPORT {
			continue
		}
		left := 0
		for _, spec := range imports.Specs {
			spec := spec.(*ast.ImportSpec)
			called := importName(spec)
			if called == "_" || called == "." || used[called] {
				left++
				continue
			}
			line := set.Position(spec.Pos()).Line
			file.drop(line, line)
		}
		if left == 0 {
			file.drop(set.Position(imports.Pos()).Line, set.Position(imports.End()).Line)
		}
	}
	return []byte(file.String()), nil
}

// majorVersion matches an element of an import path that is a version, such as v2.
var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// importName returns the name by which a file refers to a package. If the import has no name, importName uses the last
// element of the path or, if that is a version, the one before it. In paths that begin with k8s.io/api, it always uses
// the last element, because packages such as k8s.io/api/core/v1 are named after their version.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	imported, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return ""
	}
	base := path.Base(imported)
	if majorVersion.MatchString(base) && strings.Contains(imported, "/") && !strings.HasPrefix(imported, "k8s.io/api") {
		base = path.Base(path.Dir(imported))
	}
	return base
}

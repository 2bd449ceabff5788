package exercise

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/astutil"

	"example.com/operator-workshop/internal/exercise/form"
)

// declaration is a declaration in a Go file, with its doc comment and any comments above that, such as markers for a
// generator.
type declaration struct {
	// name identifies the declaration in its file. A method's name includes its receiver, a group in parentheses has
	// the name of its first element, and the name of a declaration of _ says what is assigned, such as Describe with
	// its text.
	name       string
	text       string
	start, end int // byte offsets in the file
}

// declarations returns the declarations in a Go file, except imports.
func declarations(source []byte) ([]declaration, error) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []declaration
	above := syntax.Name.End()
	for _, node := range syntax.Decls {
		if name := nameOf(node); name != "" {
			start := set.Position(firstComment(set, syntax, above, node.Pos())).Offset
			end := set.Position(node.End()).Offset
			found = append(found, declaration{name: name, text: string(source[start:end]), start: start, end: end})
		}
		above = node.End()
	}
	return found, nil
}

// firstComment returns where the first comment between two declarations begins, or next if there is none. A comment on
// the last line of the declaration above belongs to that declaration.
func firstComment(set *token.FileSet, syntax *ast.File, above, next token.Pos) token.Pos {
	for _, group := range syntax.Comments {
		if above < group.Pos() && group.Pos() < next && set.Position(group.Pos()).Line > set.Position(above).Line {
			return group.Pos()
		}
	}
	return next
}

func nameOf(node ast.Decl) string {
	switch node := node.(type) {
	case *ast.FuncDecl:
		name := node.Name.Name
		if node.Recv != nil && len(node.Recv.List) == 1 {
			name = receiver(node.Recv.List[0].Type) + "." + name
		}
		return name
	case *ast.GenDecl:
		if len(node.Specs) == 0 {
			return ""
		}
		switch spec := node.Specs[0].(type) {
		case *ast.TypeSpec:
			return spec.Name.Name
		case *ast.ValueSpec:
			if spec.Names[0].Name == "_" && len(spec.Values) == 1 {
				return "_ = " + assigned(spec.Values[0])
			}
			return spec.Names[0].Name
		}
	}
	return ""
}

// assigned returns a string that tells declarations of _ apart by their values. For a call, the string is the function,
// followed by the first argument if that is a literal. For any other value, it is the whole expression.
func assigned(value ast.Expr) string {
	call, isCall := value.(*ast.CallExpr)
	if !isCall {
		return types.ExprString(value)
	}
	name := types.ExprString(call.Fun)
	if len(call.Args) > 0 {
		if literal, isLiteral := call.Args[0].(*ast.BasicLit); isLiteral {
			name += "(" + literal.Value
		}
	}
	return name
}

func receiver(kind ast.Expr) string {
	switch kind := kind.(type) {
	case *ast.StarExpr:
		return receiver(kind.X)
	case *ast.IndexExpr:
		return receiver(kind.X)
	case *ast.Ident:
		return kind.Name
	}
	return ""
}

// changedDeclarations returns the names of the declarations that are new or different in the second of two forms.
func changedDeclarations(before, after []byte) (names []string, err error) {
	old, err := byName(before)
	if err != nil {
		return nil, err
	}
	wanted, err := declarations(after)
	for _, declared := range wanted {
		if old[declared.name].text != declared.text {
			names = append(names, declared.name)
		}
	}
	return names, err
}

func byName(source []byte) (map[string]declaration, error) {
	named := map[string]declaration{}
	if len(source) == 0 {
		return named, nil
	}
	found, err := declarations(source)
	for _, declared := range found {
		named[declared.name] = declared
	}
	return named, err
}

// graft applies the differences between two forms of a Go file to the learner's file: it replaces, adds and removes
// whole declarations, and adjusts the imports. It leaves alone the declarations that don't differ. In a YAML file, it
// treats keys and list elements in this way. It replaces any other file as a whole, and also a file that is missing or
// does not parse, or a YAML file that differs too much from the forms.
func graft(name string, theirs, before, after []byte) ([]byte, error) {
	if ext := path.Ext(name); ext == ".yaml" || ext == ".yml" {
		if grafted, ok := graftYAML(theirs, before, after); ok {
			return grafted, nil
		}
	}
	if path.Ext(name) != ".go" || len(theirs) == 0 {
		return after, nil
	}
	if _, err := declarations(theirs); err != nil {
		return after, nil
	}
	wanted, err := byName(after)
	if err != nil {
		return nil, err
	}
	old, err := byName(before)
	if err != nil {
		return nil, err
	}
	names, err := changedDeclarations(before, after)
	if err != nil {
		return nil, err
	}
	for gone := range old {
		if _, kept := wanted[gone]; !kept {
			names = append(names, gone)
		}
	}
	slices.Sort(names)
	grafted := theirs
	for _, declared := range names {
		present, err := byName(grafted)
		if err != nil {
			return nil, err
		}
		at, found := present[declared]
		text := wanted[declared].text
		if !found {
			if text != "" {
				grafted = slices.Concat(bytes.TrimRight(grafted, "\n"), []byte("\n\n"+text+"\n"))
			}
			continue
		}
		grafted = slices.Concat(grafted[:at.start], []byte(text), grafted[at.end:])
	}
	if untouched := imports(before); untouched != "" && untouched == imports(grafted) {
		grafted = bytes.Replace(grafted, []byte(untouched), []byte(imports(after)), 1)
	} else if grafted, err = addImports(grafted, after); err != nil {
		return nil, err
	}
	grafted, err = form.PruneImports(name, grafted)
	if err != nil {
		return nil, err
	}
	return format.Source(grafted)
}

// imports returns the text of a file's first import declaration.
func imports(source []byte) string {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "", source, parser.ImportsOnly)
	if err != nil || len(syntax.Decls) == 0 {
		return ""
	}
	return string(source[set.Position(syntax.Decls[0].Pos()).Offset:set.Position(syntax.Decls[0].End()).Offset])
}

func addImports(source, other []byte) ([]byte, error) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "", source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	wanted, err := parser.ParseFile(token.NewFileSet(), "", other, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	for _, spec := range wanted.Imports {
		name := ""
		if spec.Name != nil {
			name = spec.Name.Name
		}
		astutil.AddNamedImport(set, syntax, name, strings.Trim(spec.Path.Value, `"`))
	}
	var written bytes.Buffer
	if err := format.Node(&written, set, syntax); err != nil {
		return nil, fmt.Errorf("add imports: %w", err)
	}
	return written.Bytes(), nil
}

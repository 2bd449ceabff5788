package controller

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// declared returns the values of the API package's constants with this prefix. It reads
// them from the source, so that no list here can get out of date.
func declared(t *testing.T, prefix string) []string {
	t.Helper()
	g := NewWithT(t)
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1/password_types.go", nil, parser.SkipObjectResolution)
	g.Expect(err).NotTo(HaveOccurred())
	var values []string
	ast.Inspect(file, func(node ast.Node) bool {
		spec, isValue := node.(*ast.ValueSpec)
		if !isValue || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		g.Expect(err).NotTo(HaveOccurred())
		values = append(values, value)
		return false
	})
	return values
}

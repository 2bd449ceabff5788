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

// declaredReasons returns the reasons that the API package declares. It reads them from
// the source, so that there is no second list to keep up to date.
func declaredReasons(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/memcached_types.go", nil, parser.SkipObjectResolution)
	g.Expect(err).NotTo(HaveOccurred())
	var reasons []string
	ast.Inspect(file, func(node ast.Node) bool {
		spec, isValue := node.(*ast.ValueSpec)
		if !isValue || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		reason, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		g.Expect(err).NotTo(HaveOccurred())
		reasons = append(reasons, reason)
		return false
	})
	return reasons
}

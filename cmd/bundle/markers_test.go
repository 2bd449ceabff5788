package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// marker matches operator-sdk's marker above a field in the Go code.
var marker = regexp.MustCompile(`\+operator-sdk:csv:customresourcedefinitions:type=(spec|status),displayName="([^"]*)"(?:,xDescriptors=\{([^}]*)\})?`)

// `operator-sdk generate kustomize manifests` replaces the descriptors in config/manifests/bases with those that the
// markers describe.
func TestTheDescriptorsMatchTheMarkers(t *testing.T) {
	g := NewWithT(t)
	owned := readVersion(t).Spec.CustomResourceDefinitions.Owned
	g.Expect(owned).To(HaveLen(1))
	withoutDescription := func(descriptors []descriptor) []descriptor {
		for i := range descriptors {
			descriptors[i].Description = ""
		}
		return descriptors
	}
	marked := readMarkers(t)
	const hint = "the markers in api/v1alpha1/memcached_types.go and the descriptors in config/manifests/bases differ"
	g.Expect(withoutDescription(owned[0].SpecDescriptors)).To(ConsistOf(marked["spec"]), hint)
	g.Expect(withoutDescription(owned[0].StatusDescriptors)).To(ConsistOf(marked["status"]), hint)
}

// readMarkers returns the descriptors that the markers in the Go code describe. The keys are "spec" and "status".
func readMarkers(t *testing.T) map[string][]descriptor {
	t.Helper()
	g := NewWithT(t)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(stageRoot, "api/v1alpha1/memcached_types.go"), nil, parser.ParseComments)
	g.Expect(err).NotTo(HaveOccurred())
	marked := map[string][]descriptor{}
	ast.Inspect(file, func(node ast.Node) bool {
		field, isField := node.(*ast.Field)
		if !isField || field.Doc == nil || field.Tag == nil {
			return true
		}
		for _, comment := range field.Doc.List {
			match := marker.FindStringSubmatch(comment.Text)
			if match == nil {
				continue
			}
			path, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
			shown := descriptor{Path: path, DisplayName: match[2]}
			if match[3] != "" {
				shown.Shown = strings.Split(strings.ReplaceAll(match[3], `"`, ""), ",")
			}
			marked[match[1]] = append(marked[match[1]], shown)
		}
		return true
	})
	return marked
}

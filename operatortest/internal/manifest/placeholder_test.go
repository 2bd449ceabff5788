package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestFillFields(t *testing.T) {
	g := NewWithT(t)
	fields := map[string]any{
		"name": "web-{{.Namespace}}", "namespace": "{{ .Namespace }}", "size": int64(2), "nothing": nil,
		"subjects": []any{map[string]any{"in.{{.Namespace}}": "{{.Namespace}}"}, "{{ .Values.namespace }}"},
	}
	filled := FillFields(fields, "spec-abcde")
	g.Expect(filled).To(Equal(map[string]any{
		"name": "web-spec-abcde", "namespace": "spec-abcde", "size": int64(2), "nothing": nil,
		"subjects": []any{map[string]any{"in.spec-abcde": "spec-abcde"}, "{{ .Values.namespace }}"},
	}))
	g.Expect(fields["name"]).To(Equal("web-{{.Namespace}}"), "the original must not change")
	g.Expect(EmptyFields(filled, "spec-abcde")).To(HaveKeyWithValue("name", "web-{{.Namespace}}"))
	g.Expect(FillFields(nil, "spec-abcde")).To(BeNil())
}

func TestExplain(t *testing.T) {
	refused := errors.New("refused")
	tests := map[string]struct{ name, want string }{
		"a misspelt placeholder": {"web-{{.Namspace}}", "refused (it contains {{.Namspace}} as it is, because the only placeholder in an object is {{.Namespace}})"},
		"no placeholder":         {"web", "refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": test.name}}}
			err := Explain(refused, object)
			g.Expect(err).To(MatchError(test.want))
			g.Expect(err).To(MatchError(refused))
			g.Expect(Explain(nil, object)).To(Succeed())
		})
	}
}

func TestReadExplainsAPlaceholderWithoutQuotes(t *testing.T) {
	tests := map[string]struct {
		content   string
		explained bool
	}{
		"the value of a field":       {"kind: A\nmetadata: {name: a}\nspec:\n  namespace: {{.Namespace}}\n", true},
		"an item of a list":          {"kind: A\nspec:\n- {{.Namespace}}\n", true},
		"another mistake":            {"kind: [A\n", false},
		"a placeholder in the text":  {"kind: A\nspec: {name: [web-{{.Namespace}}}\n", false},
		"a template in other braces": {"kind: [A\nspec: \"{{.Namespace}}\"\n", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "sample.yaml")
			g.Expect(os.WriteFile(file, []byte(test.content), 0o600)).To(Succeed())
			_, err := Read(file)
			hint := ContainSubstring(`put a text that begins with a placeholder into quotes: "{{.Namespace}}"`)
			if !test.explained {
				hint = Not(hint)
			}
			g.Expect(err).To(MatchError(hint))
		})
	}
}

package behaviours

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRenameInLeavesKeptFieldsAlone(t *testing.T) {
	sample := map[string]any{
		"secret": "a", "secretName": "a", "size": int64(2),
		"users": []any{map[string]any{"password": "a"}}, "files": map[string]any{"one": map[string]any{"from": "a"}},
	}
	tests := map[string]struct {
		kept []string
		want map[string]any
	}{
		"a field":                 {[]string{"spec.secret", "spec.users", "spec.files"}, map[string]any{"secret": "a", "secretName": "b"}},
		"a field in a list":       {[]string{"spec.secret", "spec.secretName", "spec.users[].password", "spec.files"}, nil},
		"a field in a map":        {[]string{"spec.secret", "spec.secretName", "spec.users", "spec.files.*.from"}, nil},
		"the spec":                {[]string{"spec"}, nil},
		"another field in a list": {[]string{"spec.users[].name", "spec.secret", "spec.secretName", "spec.files"}, map[string]any{"users": []any{map[string]any{"password": "b"}}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			want := maps.Clone(sample)
			maps.Copy(want, test.want)
			renamed, found := renameIn(sample, below(test.kept, "spec"), "a", "b")
			g.Expect(renamed).To(Equal(want))
			g.Expect(found).To(Equal(test.want != nil))
		})
	}
}

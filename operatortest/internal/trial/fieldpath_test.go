package trial

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

// TestRemove removes the fields in a set of managed fields from an object, except those that an earlier version of the
// object already had.
func TestRemove(t *testing.T) {
	const env = `{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:env":{"k:{\"name\":\"X\"}":{".":{},"f:name":{},"f:value":{}}}}}}}`
	tests := map[string]struct{ before, after, owned, want string }{
		"the last entry of a list, and then the list": {
			before: `spec: {containers: [{name: a, image: i}]}`,
			after:  `spec: {containers: [{name: a, image: i, env: [{name: X, value: x}]}]}`, owned: env,
			want: `spec: {containers: [{name: a, image: i}]}`,
		},
		"an entry of a list that has others, too": {
			before: `spec: {containers: [{name: b}, {name: a, env: [{name: Y}]}]}`,
			after:  `spec: {containers: [{name: b}, {name: a, env: [{name: X, value: x, more: 1}, {name: Y}]}]}`, owned: env,
			want: `spec: {containers: [{name: b}, {name: a, env: [{name: Y}]}]}`,
		},
		"the last annotation, and then the map": {
			before: `metadata: {labels: {a: b}}`,
			after:  `metadata: {labels: {a: b}, annotations: {c: d}}`, owned: `{"f:metadata":{"f:annotations":{"f:c":{}}}}`,
			want: `metadata: {labels: {a: b}}`,
		},
		"a plain value of a set, and an entry with a number in its key": {
			before: `{set: [b], ports: [{port: 80, protocol: TCP}]}`,
			after:  `{set: [a, b], ports: [{port: 80, protocol: UDP}, {port: 80, protocol: TCP}]}`,
			owned:  `{"f:set":{"v:\"a\"":{}},"f:ports":{"k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}}}}`,
			want:   `{set: [b], ports: [{port: 80, protocol: TCP}]}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before, after := objectOf(g, test.before), objectOf(g, test.after)
			owned := &fieldpath.Set{}
			g.Expect(owned.FromJSON(strings.NewReader(test.owned))).To(Succeed())
			owned.Leaves().Iterate(func(path fieldpath.Path) {
				value, found := at(after, path)
				if _, former := at(before, path); !former && found {
					g.Expect(value).NotTo(BeNil())
					remove(after, outermost(before, path.Copy()))
				}
			})
			g.Expect(after).To(Equal(objectOf(g, test.want)))
		})
	}
}

func objectOf(g *WithT, text string) map[string]any {
	content, err := yaml.YAMLToJSON([]byte(text))
	g.Expect(err).NotTo(HaveOccurred())
	object := map[string]any{}
	g.Expect(utiljson.Unmarshal(content, &object)).To(Succeed()) // decodes numbers as the API server's clients do
	return object
}

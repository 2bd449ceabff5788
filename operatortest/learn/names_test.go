package learn

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPair(t *testing.T) {
	tests := map[string]struct {
		first, second string
		want          []string
	}{
		"the resource's name":               {"hello", "hello", []string{"object.metadata.name", `"hello"`}},
		"a suffix":                          {"hello-web", "hello-web", []string{`object.metadata.name + "-web"`, `"hello-web"`}},
		"a prefix":                          {"web-hello", "web-hello", []string{`"web-" + object.metadata.name`, `"web-hello"`}},
		"a prefix and a suffix":             {"my-hello-web", "my-hello-web", []string{`"my-" + object.metadata.name + "-web"`, `"my-hello-web"`}},
		"a field of the spec":               {"words", "words", []string{"object.spec.configMapName", `"words"`}},
		"a field of the spec, and a suffix": {"words-web", "words-web", []string{`object.spec.configMapName + "-web"`, `"words-web"`}},
		"a field whose name CEL reserves":   {"deep", "deep", []string{`object.spec.inner["in"]`, `"deep"`}},
		"the namespace":                     {"one-web", "two-web", []string{`object.metadata.namespace + "-web"`}},
		"two fields that fit":               {"hello-words", "hello-words", []string{`object.metadata.name + "-words"`, `"hello-" + object.spec.configMapName`, `"hello-words"`}},
		"a name that uses no field":         {"shared", "shared", []string{`"shared"`}},
		"a generated name":                  {"hello-x7k2p", "hello-9qwzm", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			first := run{resource: greeting(t, "one"), children: []*unstructured.Unstructured{configMap(t, test.first)}}
			second := run{resource: greeting(t, "two"), children: []*unstructured.Unstructured{configMap(t, test.second)}}
			children := pair(first, second)
			g.Expect(children).To(HaveLen(1))
			g.Expect(children[0].name).To(Equal(test.want))
			g.Expect(children[0].second).To(BeIdenticalTo(second.children[0]))
		})
	}
	t.Run("an object that only one run created", func(t *testing.T) {
		g := NewWithT(t)
		more := run{resource: greeting(t, "one"), children: []*unstructured.Unstructured{configMap(t, "hello"), configMap(t, "hello-more")}}
		fewer := run{resource: greeting(t, "two"), children: []*unstructured.Unstructured{configMap(t, "hello")}}
		for _, children := range [][]child{pair(more, fewer), pair(fewer, more)} {
			g.Expect(children).To(HaveLen(2))
			g.Expect(children[1].First()).To(Equal("hello-more"))
			g.Expect(children[1].Once()).To(BeTrue())
		}
	})
}

func TestGeneratedChildrenAreToldApartByLabels(t *testing.T) {
	labelled := func(name, labels string) *unstructured.Unstructured {
		return object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", labels: {"+labels+"}}}")
	}
	tests := map[string]struct {
		first, second []*unstructured.Unstructured
		want          []map[string]string
	}{
		"the only one of its kind": {
			[]*unstructured.Unstructured{labelled("hello-a1", "part: one")}, []*unstructured.Unstructured{labelled("hello-b1", "part: one")},
			[]map[string]string{nil},
		},
		"two, with a common label and a random one": {
			[]*unstructured.Unstructured{labelled("hello-a1", "app: x, part: one, hash: a1"), labelled("hello-a2", "app: x, part: two, hash: a2")},
			[]*unstructured.Unstructured{labelled("hello-b1", "app: x, part: two, hash: b1"), labelled("hello-b2", "app: x, part: one, hash: b2")},
			[]map[string]string{{"part": "one"}, {"part": "two"}},
		},
		"two with the same labels": {
			[]*unstructured.Unstructured{labelled("hello-a1", "app: x"), labelled("hello-a2", "app: x")},
			[]*unstructured.Unstructured{labelled("hello-b1", "app: x"), labelled("hello-b2", "app: x")},
			[]map[string]string{nil, nil},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			children := pair(run{resource: greeting(t, "one"), children: test.first}, run{resource: greeting(t, "two"), children: test.second})
			g.Expect(children).To(HaveLen(len(test.want)))
			for i, child := range children {
				g.Expect(child.Labels).To(Equal(test.want[i]))
				g.Expect(child.second.GetLabels()["part"]).To(Equal(child.first.GetLabels()["part"]), "the two objects of a pair must be the same child of both runs")
			}
		})
	}
}

func TestMissing(t *testing.T) {
	g := NewWithT(t)
	objects := []*unstructured.Unstructured{configMap(t, "kept"), configMap(t, "again"), configMap(t, "hello-a1")}
	g.Expect(missing([]string{"kept", "lock", "again", "again", "hello-*", "hello-*", "hello-*", "lock"}, objects)).To(Equal([]string{"again", "hello-*", "lock"}))
	g.Expect(missing([]string{"kept"}, objects)).To(BeEmpty())
}

package learn

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// object parses YAML. Its numbers get the types that they have in an object from the API server.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	made := &unstructured.Unstructured{}
	NewWithT(t).Expect(errors.Join(err, utiljson.Unmarshal(content, &made.Object))).To(Succeed())
	return made
}

func greeting(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `
apiVersion: test.example.com/v1
kind: Greeting
metadata: {name: hello, namespace: `+namespace+`}
spec: {text: a, configMapName: words, inner: {in: deep}}
`)
}

func configMap(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	return object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}}")
}

func TestDifferences(t *testing.T) {
	tests := map[string]struct {
		one, other string
		want       []string
	}{
		"nothing":                       {"{a: 1}", "{a: 1}", nil},
		"a value":                       {"{data: {a: x, b: y}}", "{data: {a: x, b: z}}", []string{"/data/b"}},
		"a field that only one has":     {"{data: {a: x}}", "{data: {a: x, b: z}}", []string{"/data/b"}},
		"a name with a slash and tilde": {"{data: {a/b~c: x}}", "{data: {a/b~c: y}}", []string{"/data/a~1b~0c"}},
		"a field of an item":            {"{list: [{a: 1}, {a: 2}]}", "{list: [{a: 1}, {a: 3}]}", []string{"/list/1/a"}},
		"an item that is a plain value": {"{list: [a, b]}", "{list: [a, c]}", []string{"/list"}},
		"lists of two lengths":          {"{list: [{a: 1}]}", "{list: []}", []string{"/list"}},
		"an empty list and no list":     {"{list: []}", "{a: 1}", []string{"/a", "/list"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(differences(object(t, test.one).Object, object(t, test.other).Object, "")).To(Equal(test.want))
		})
	}
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: hello
  labels: {app: web, team: blue}
  managedFields:
  - manager: greeter
    operation: Apply
    fieldsType: FieldsV1
    fieldsV1: {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:replicas": {}, "f:selector": {}, "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}}}
  - manager: kube-controller-manager
    operation: Update
    fieldsType: FieldsV1
    fieldsV1: {"f:spec": {"f:paused": {}}}
  - manager: greeter
    operation: Update
    subresource: status
    fieldsType: FieldsV1
    fieldsV1: {"f:status": {"f:replicas": {}}}
spec: {replicas: 1, paused: true, strategy: {type: Recreate}, selector: {app: web}, containers: [{name: a, image: b}]}
status: {replicas: 1}
`

func TestSplit(t *testing.T) {
	g := NewWithT(t)
	own, others := split(object(t, deployment))
	g.Expect(own).To(ConsistOf([]string{"metadata", "labels", "app"}, []string{"spec", "replicas"}, []string{"spec", "selector", "app"}, []string{"spec", "containers"}))
	g.Expect(others).To(ConsistOf([]string{"metadata", "labels", "team"}, []string{"spec", "paused"}, []string{"spec", "strategy", "type"}))
}

func TestProposals(t *testing.T) {
	tests := map[string]struct {
		path []string
		want []any
	}{
		"a number": {[]string{"spec", "replicas"}, []any{map[string]any{"spec": map[string]any{"replicas": int64(2)}}}},
		"a label":  {[]string{"metadata", "labels", "app"}, []any{map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": nil}}}}},
		"a list":   {[]string{"spec", "containers"}, nil},
		"a bool":   {[]string{"spec", "paused"}, nil},
		"a short text": {[]string{"spec", "strategy", "type"}, []any{
			map[string]any{"spec": map[string]any{"strategy": map[string]any{"type": "changed"}}},
			map[string]any{"spec": map[string]any{"strategy": map[string]any{"type": "Recreate-changed"}}},
			map[string]any{"spec": map[string]any{"strategy": map[string]any{"type": "Y2hhbmdlZA=="}}},
			map[string]any{"spec": map[string]any{"strategy": map[string]any{"type": "7"}}},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var patches []any
			for _, made := range proposals(object(t, deployment), test.path) {
				patches = append(patches, made.Patch)
			}
			NewWithT(t).Expect(patches).To(Equal(test.want))
		})
	}
	t.Run("the content of a Secret is not repeated", func(t *testing.T) {
		secret := object(t, "{apiVersion: v1, kind: Secret, data: {password: aHVudGVy}}")
		for _, made := range proposals(secret, []string{"data", "password"}) {
			NewWithT(t).Expect(made.Patch["data"]).NotTo(HaveKeyWithValue("password", ContainSubstring("aHVudGVy")))
		}
	})
}

func TestVerdict(t *testing.T) {
	tests := map[string]struct {
		status string
		want   verdict
	}{
		"Ready, before Available": {
			"conditions: [{type: Available, status: 'True'}, {type: Ready, status: 'True', observedGeneration: 1}]", verdict{Condition: "Ready", Observed: true},
		},
		"Available, before others": {"conditions: [{type: Ready, status: 'False'}, {type: A, status: 'True'}, {type: Available, status: 'True'}]", verdict{Condition: "Available"}},
		"any that is True":         {"{observedGeneration: 1, conditions: [{type: A, status: 'False'}, {type: B, status: 'True'}]}", verdict{Condition: "B", Observed: true}},
		"a phase":                  {"phase: Done", verdict{Expression: `object.status.phase == "Done"`}},
		"a state and a generation": {
			"{state: up, observedGeneration: 1}",
			verdict{Expression: `object.status.state == "up" && object.status.observedGeneration == object.metadata.generation`, Observed: true},
		},
		"nothing": {"size: 1", verdict{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			status := object(t, test.status)
			resource := &unstructured.Unstructured{Object: map[string]any{"status": status.Object}}
			NewWithT(t).Expect(verdictOf(resource)).To(Equal(test.want))
		})
	}
}

func TestChoose(t *testing.T) {
	a, b, one, two := proposal{What: "a"}, proposal{What: "b"}, proposal{What: "label 1"}, proposal{What: "label 2"}
	tests := map[string]struct{ set, labels, want []proposal }{
		"a field and a label":    {[]proposal{a, b}, []proposal{one, two}, []proposal{a, one}},
		"two fields":             {[]proposal{a, b}, nil, []proposal{a, b}},
		"one label of several":   {nil, []proposal{one, two}, []proposal{one}},
		"nothing to choose from": {nil, nil, []proposal{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(choose(test.set, test.labels)).To(HaveExactElements(test.want))
		})
	}
}

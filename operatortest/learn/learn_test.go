package learn

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/operatortest/config"
)

// object parses an object as the API server returns it.
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

func TestPair(t *testing.T) {
	tests := map[string]struct {
		first, second string
		want          []string
	}{
		"the resource's name":               {"hello", "hello", []string{"object.metadata.name", `"hello"`}},
		"a suffix":                          {"hello-web", "hello-web", []string{`object.metadata.name + "-web"`, `"hello-web"`}},
		"a prefix":                          {"web-hello", "web-hello", []string{`"web-" + object.metadata.name`, `"web-hello"`}},
		"both":                              {"my-hello-web", "my-hello-web", []string{`"my-" + object.metadata.name + "-web"`, `"my-hello-web"`}},
		"a field of the spec":               {"words", "words", []string{"object.spec.configMapName", `"words"`}},
		"a field of the spec, and a suffix": {"words-web", "words-web", []string{`object.spec.configMapName + "-web"`, `"words-web"`}},
		"a field whose name CEL reserves":   {"deep", "deep", []string{`object.spec.inner["in"]`, `"deep"`}},
		"the namespace":                     {"one-web", "two-web", []string{`object.metadata.namespace + "-web"`}},
		"two fields that fit":               {"hello-words", "hello-words", []string{`object.metadata.name + "-words"`, `"hello-" + object.spec.configMapName`, `"hello-words"`}},
		"no field":                          {"shared", "shared", []string{`"shared"`}},
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
		"one of its kind": {
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
				g.Expect(child.second.GetLabels()["part"]).To(Equal(child.first.GetLabels()["part"]), "the same child of both runs")
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

func TestDifferences(t *testing.T) {
	tests := map[string]struct {
		one, other string
		want       []string
	}{
		"nothing":                       {"{a: 1}", "{a: 1}", nil},
		"a value":                       {"{data: {a: x, b: y}}", "{data: {a: x, b: z}}", []string{"/data/b"}},
		"a field that one has":          {"{data: {a: x}}", "{data: {a: x, b: z}}", []string{"/data/b"}},
		"a name with a slash and tilde": {"{data: {a/b~c: x}}", "{data: {a/b~c: y}}", []string{"/data/a~1b~0c"}},
		"a field of an item":            {"{list: [{a: 1}, {a: 2}]}", "{list: [{a: 1}, {a: 3}]}", []string{"/list/1/a"}},
		"an item without fields":        {"{list: [a, b]}", "{list: [a, c]}", []string{"/list"}},
		"lists of two lengths":          {"{list: [{a: 1}]}", "{list: []}", []string{"/list"}},
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
		"true":     {[]string{"spec", "paused"}, nil},
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
		"Ready comes first": {
			"conditions: [{type: Available, status: 'True'}, {type: Ready, status: 'True', observedGeneration: 1}]", verdict{Condition: "Ready", Observed: true},
		},
		"then Available":        {"conditions: [{type: Ready, status: 'False'}, {type: A, status: 'True'}, {type: Available, status: 'True'}]", verdict{Condition: "Available"}},
		"then any that is True": {"{observedGeneration: 1, conditions: [{type: A, status: 'False'}, {type: B, status: 'True'}]}", verdict{Condition: "B", Observed: true}},
		"a phase":               {"phase: Done", verdict{Expression: `object.status.phase == "Done"`}},
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

// Whatever the runs found, the rendered file can be read.
func TestRender(t *testing.T) {
	g := NewWithT(t)
	first, second := run{resource: greeting(t, "one")}, run{resource: greeting(t, "two")}
	first.children = []*unstructured.Unstructured{configMap(t, "hello-words"), configMap(t, "hello-x7k2p"), configMap(t, "shared"), configMap(t, "one"), object(t, deployment)}
	second.children = []*unstructured.Unstructured{configMap(t, "hello-words"), configMap(t, "hello-9qwzm"), configMap(t, "shared"), configMap(t, "two")}
	first.drift = [][]proposal{{{What: `data."a": b changed`, Patch: map[string]any{"data": map[string]any{"a: b": "two\nlines"}}}}, nil, nil, nil, nil}
	first.gone = []string{"ConfigMap lock", "Job hello-*"}
	first.children[1].SetLabels(map[string]string{"part": "one"})
	second.children[1].SetLabels(map[string]string{"part": "one"})
	first.state = map[string]any{"ConfigMap/shared": map[string]any{"data": map[string]any{"time": "1"}}}
	second.state = map[string]any{"ConfigMap/shared": map[string]any{"data": map[string]any{"time": "2"}}}
	file := config.File{CRDs: []string{"crds: all"}, Sample: "sample.yaml", Command: []string{"./manager", "--namespace={{.Namespace}}", "--note=a # b"}}
	content, err := describe(file, first, second, []unknown{{"spec.text", "one: 1"}}).render()
	g.Expect(err).NotTo(HaveOccurred())
	text := string(content)
	for _, line := range []string{
		`  name: object.metadata.name + "-words" # or: "hello-" + object.spec.configMapName`,
		"  # The name is generated, such as hello-x7k2p: the kit takes the one object of this kind and with these labels that the Greeting controls.\n",
		"  generated: true\n  labels: {part: one}\n",
		"# children: ConfigMap lock, Job hello-*\nmaxWrites: ",
		`  # The same name in both runs, and it depends on no field`,
		`  name: object.metadata.namespace`,
		`  # Only one of the two runs left this object, hello:`,
		`  # It has no controller reference to the Greeting`,
		`  # Fields that the operator does not own; list those that others may change in foreign: metadata.labels.team, spec.paused, spec.strategy.type`,
		"- kind: ConfigMap\n  fields: [/data/time]\n",
		"# converged: object.status.ready == true",
		"# values:\n#   spec.text: ['one: 1']\n",
	} {
		g.Expect(text).To(ContainSubstring(line))
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "operatortest.yaml")
	g.Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	sample, err := first.resource.MarshalJSON()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, "sample.yaml"), sample, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "manager"), nil, 0o700)).To(Succeed())
	operator, err := config.Load(path, "")
	g.Expect(err).NotTo(HaveOccurred(), text)
	g.Expect(operator.Children).To(HaveLen(5))
	g.Expect(operator.Children[0].Drift).To(HaveKeyWithValue(`data."a": b changed`, `{"data":{"a: b":"two\nlines"}}`))
	g.Expect(operator.Children).To(ContainElement(And(HaveField("Generated", true), HaveField("Labels", map[string]string{"part": "one"}))))
	g.Expect(operator.Normalize).NotTo(BeNil())
}

func TestCheck(t *testing.T) {
	const shell = "../examples/shell/"
	complete := Options{CRDs: []string{shell + "crd.yaml"}, Sample: shell + "sample.yaml", Command: []string{"./greeter.sh"}, Timeout: time.Second}
	NewWithT(t).Expect(complete.Check()).To(Succeed())
	tests := map[string]struct {
		change func(*Options)
		want   string
	}{
		"no definitions":                {func(o *Options) { o.CRDs = nil }, "use --crd"},
		"no sample":                     {func(o *Options) { o.Sample = "" }, "use --sample"},
		"no command":                    {func(o *Options) { o.Command = nil }, `say how to start the operator after "--"`},
		"no time":                       {func(o *Options) { o.Timeout = 0 }, "--timeout 0s: give a positive duration, such as 60s"},
		"a sample that does not exist":  {func(o *Options) { o.Sample = "absent.yaml" }, "absent.yaml: no such file"},
		"definitions that do not exist": {func(o *Options) { o.CRDs = []string{"absent"} }, "--crd: stat absent: no such file"},
		"a sample without a definition": {func(o *Options) { o.Sample = shell + "role.yaml" }, "role.yaml is a Role of rbac.authorization.k8s.io/v1, which no definition in " + shell + "crd.yaml defines"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			options := complete
			test.change(&options)
			NewWithT(t).Expect(options.Check()).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

package learn

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest/config"
)

// config.Load must be able to read the rendered file.
func TestRender(t *testing.T) {
	g := NewWithT(t)
	first, second := run{resource: greeting(t, "one")}, run{resource: greeting(t, "two")}
	first.children = []*unstructured.Unstructured{configMap(t, "hello-words"), configMap(t, "hello-x7k2p"), configMap(t, "shared"), configMap(t, "one"), object(t, deployment)}
	second.children = []*unstructured.Unstructured{configMap(t, "hello-words"), configMap(t, "hello-9qwzm"), configMap(t, "shared"), configMap(t, "two")}
	for _, made := range first.children[1:] { // the first one is cluster-scoped
		made.SetNamespace(first.resource.GetNamespace())
	}
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
		"# declare these as children: ConfigMap lock, Job hello-*\nmaxWrites: ",
		"  # The name depends neither on the Greeting's name nor on its spec: two of them in one namespace would share the object.\n  name: object.metadata.namespace\n",
		`  # Only one of the two runs left this object, hello:`,
		`  # This object lacks a controller reference to the Greeting`,
		`  # The operator does not own the following fields. If others may change one of them, add it to foreign: metadata.labels.team, spec.paused, spec.strategy.type`,
		"- kind: ConfigMap\n  fields: [/data/time]\n",
		"# converged: object.status.ready == true",
		"# values:\n#   spec.text: ['one: 1']\n",
		"\n# maxPause: 5s\n",
	} {
		g.Expect(text).To(ContainSubstring(line))
	}
	g.Expect(strings.Count(text, "lacks a controller reference")).To(Equal(4), "a cluster-scoped object can't have one to a namespaced resource")
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

func TestExpressionsForNames(t *testing.T) {
	tests := map[string]struct {
		name     []string
		isShared bool
		fits     string
	}{
		"a fixed name":             {[]string{`"words"`}, true, ""},
		"the namespace":            {[]string{`object.metadata.namespace + "-words"`}, true, ""},
		"the resource's name":      {[]string{`object.metadata.name + "-words"`}, false, ""},
		"a field, or a fixed name": {[]string{"object.spec.text", `"words"`}, false, ""},
		"alternatives":             {[]string{"object.metadata.name", "object.metadata.namespace", `"words"`}, false, "object.metadata.namespace"},
		"alternatives that differ": {[]string{"object.metadata.name", "object.metadata.namespace"}, false, "object.metadata.namespace"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			made := child{name: test.name, first: configMap(t, "words")}
			g.Expect(made.Shared()).To(Equal(test.isShared))
			g.Expect(made.Fits()).To(Equal(test.fits))
		})
	}
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
		"no command":                    {func(o *Options) { o.Command = nil }, `after "--", give the command that starts the operator`},
		"no timeout":                    {func(o *Options) { o.Timeout = 0 }, "--timeout 0s: give a positive duration, such as 60s"},
		"a sample that does not exist":  {func(o *Options) { o.Sample = "absent.yaml" }, "absent.yaml: no such file"},
		"definitions that do not exist": {func(o *Options) { o.CRDs = []string{"absent"} }, "--crd: stat absent: no such file"},
		"a sample without a definition": {func(o *Options) { o.Sample = shell + "role.yaml" }, "role.yaml has the kind Role of rbac.authorization.k8s.io/v1, which no definition in " + shell + "crd.yaml defines"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			options := complete
			test.change(&options)
			NewWithT(t).Expect(options.Check()).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

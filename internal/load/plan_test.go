package load

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

const goodPlan = `idealWrites: 3
resource:
  apiVersion: example.com/v1
  kind: Thing
  metadata: {name: thing-NUMBER}
  spec: {size: 2, hosts: [a-NUMBER, b], nested: {label: NUMBER of many}}
`

func planOf(t *testing.T, content string) (*plan, error) {
	t.Helper()
	stage := t.TempDir()
	file := filepath.Join(stage, filepath.FromSlash(planFile))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return readPlan(stage)
}

func TestPlanObject(t *testing.T) {
	g := NewWithT(t)
	read, err := planOf(t, goodPlan)
	g.Expect(err).NotTo(HaveOccurred())
	for range 2 { // the template must stay as it is
		made := read.object(7)
		g.Expect(made.GetName()).To(Equal("thing-7"))
		g.Expect(made.GetNamespace()).To(Equal(namespace))
		g.Expect(made.Object["spec"]).To(Equal(map[string]any{
			"size": float64(2), "hosts": []any{"a-7", "b"}, "nested": map[string]any{"label": "7 of many"},
		}))
	}
}

func TestReadPlanRefusesFaultyPlans(t *testing.T) {
	for name, test := range map[string]struct{ content, wanted string }{
		"no resource":           {content: "idealWrites: 1\n", wanted: "resource needs an apiVersion and a kind"},
		"one name for all":      {content: "idealWrites: 1\nresource: {apiVersion: v1, kind: A, metadata: {name: a}}\n", wanted: "metadata.name with the word NUMBER"},
		"no name":               {content: "idealWrites: 1\nresource: {apiVersion: v1, kind: A}\n", wanted: "metadata.name with the word NUMBER"},
		"no ideal":              {content: "resource: {apiVersion: v1, kind: A, metadata: {name: a-NUMBER}}\n", wanted: "idealWrites is 0"},
		"a misspelled field":    {content: "idealWrite: 1\n", wanted: `unknown field "idealWrite"`},
		"a field given twice":   {content: "idealWrites: 1\nidealWrites: 2\n", wanted: `key "idealWrites" already set in map`},
		"text that is not YAML": {content: "idealWrites: [\n", wanted: "load.yaml: "},
		"metadata as a list":    {content: "idealWrites: 1\nresource: {apiVersion: v1, kind: A, metadata: [x]}\n", wanted: "metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := planOf(t, test.content)
			g.Expect(err).To(MatchError(ContainSubstring(test.wanted)))
			g.Expect(err).NotTo(MatchError(ContainSubstring("\n")), "an error must be one line")
		})
	}
}

func TestReadPlanOfAStageWithoutOne(t *testing.T) {
	_, err := readPlan(t.TempDir())
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("load.yaml is missing: only a stage that has it can be measured")))
}

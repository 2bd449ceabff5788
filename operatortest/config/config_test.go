package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// least is the shortest valid description of an operator.
const least = "crds: [crd.yaml]\nsample: sample.yaml\ncommand: [sh]\n"

func load(t *testing.T, content string) (operatortest.Operator, string, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "operatortest.yaml")
	g := NewWithT(t)
	g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "sample.yaml"), []byte("kind: Site\nspec: {prefix: shop, size: 2}\n"), 0o600)).To(Succeed())
	operator, err := Load(path, "")
	return operator, dir, err
}

func TestLoad(t *testing.T) {
	g := NewWithT(t)
	operator, dir, err := load(t, least+`
condition: Available
maxWrites: 4
timeout: 20s
maxPause: 5s
parallel: 4
values: {spec.size: [1, 2]}
leftOut: {failover: one replica by design}
required: {spec.size: the last one is kept}
converged: object.status.phase == "Ready"
children:
- {apiVersion: apps/v1, kind: Deployment, name: object.spec.prefix + "-web", drift: {scaled: {spec: {replicas: 3}}}}
- {apiVersion: batch/v1, kind: Job, generated: true, labels: {part: one}}
unmeetable:
- {name: image can't be pulled, patch: {spec: {image: none}}}
normalize:
- {kind: Secret, fields: [/data/password, /metadata/annotations/example.com~1at], name: true}
`)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(operator.CRDs).To(Equal([]string{filepath.Join(dir, "crd.yaml")}))
	g.Expect(operator.Timeout).To(Equal(20 * time.Second))
	g.Expect(operator.MaxPause).To(Equal(5 * time.Second))
	g.Expect(operator.Parallel).To(Equal(4))
	g.Expect(operator.ServesWebhooks).To(BeFalse())
	g.Expect(operator.LeftOut).To(And(HaveLen(2), HaveKey("failover"), HaveKey("silent/resync")), "silent/resync must be left out, because the file has no arguments for resyncs")
	g.Expect(operator.Required).To(HaveKey("spec.size"))
	g.Expect(operator.Unmeetable[0].Patch).To(MatchJSON(`{"spec":{"image":"none"}}`))

	g.Expect(operator.Children[1].Generated).To(BeTrue())
	g.Expect(operator.Children[1].Labels).To(Equal(map[string]string{"part": "one"}))
	child := operator.Children[0]
	g.Expect(child.Kind.String()).To(Equal("apps/v1, Kind=Deployment"))
	g.Expect(child.Drift).To(HaveKeyWithValue("scaled", MatchJSON(`{"spec":{"replicas":3}}`)))
	resource := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"prefix": "shop"}}}
	g.Expect(child.NameFor(resource)).To(Equal("shop-web"))
	g.Expect(child.NameFor(&unstructured.Unstructured{Object: map[string]any{}})).To(BeEmpty(), "there is no prefix to build a name from")

	g.Expect(operator.Converged(resource)).To(MatchError(ContainSubstring("no such key: status")))
	resource.Object["status"] = map[string]any{"phase": "Pending"}
	g.Expect(operator.Converged(resource)).To(MatchError(`object.status.phase == "Ready" is false; the status is {"phase":"Pending"}`))
	resource.Object["status"] = map[string]any{"phase": "Ready"}
	g.Expect(operator.Converged(resource)).To(Succeed())

	secret := &unstructured.Unstructured{Object: map[string]any{
		"kind": "Secret", "metadata": map[string]any{"name": "a1b2", "annotations": map[string]any{"example.com/at": "now"}},
		"data": map[string]any{"password": "eA==", "user": "eQ=="},
	}}
	operator.Normalize(secret)
	g.Expect(secret.Object).To(Equal(map[string]any{
		"kind": "Secret", "metadata": map[string]any{"name": "generated", "annotations": map[string]any{}}, "data": map[string]any{"user": "eQ=="},
	}))
}

func TestResyncWithArgumentsIsNotLeftOut(t *testing.T) {
	g := NewWithT(t)
	operator, _, err := load(t, least+`resync: ["--resync={{.Resync}}"]`)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(operator.LeftOut).To(BeEmpty())
}

// A missing field or list item may still appear, so it is worth waiting for. An expression that can never be true or
// false must fail immediately.
func TestOnlyUnusableExpressionsFailImmediately(t *testing.T) {
	tests := map[string]struct {
		expression string
		unusable   bool
	}{
		"a field that does not exist yet":      {`object.status.ready == true`, false},
		"a list that is still too short":       {`object.spec.list[0] == "a"`, false},
		"a field that is not a bool":           {`object.spec.size`, true},
		"a comparison that can't be evaluated": {`object.spec.size > "2"`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			check, err := converged(test.expression)
			g.Expect(err).NotTo(HaveOccurred())
			err = check(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(2), "list": []any{}}}})
			g.Expect(err).To(HaveOccurred())
			g.Expect(trial.IsUnusable(err)).To(Equal(test.unusable), err.Error())
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"a field that does not exist":               {least + "childs: []\n", `unknown field "childs"`},
		"a file without a command":                  {"crds: [crd.yaml]\nsample: sample.yaml\n", "crds, sample and command are required"},
		"an invalid expression":                     {least + "converged: object.status.phase =\n", `converged: "object.status.phase =" is not a CEL expression`},
		"a converged expression that is not a bool": {least + "converged: '\"Ready\"'\n", `converged: "Ready" has the type string, not bool`},
		"a name that is not an expression":          {least + "children: [{apiVersion: v1, kind: Secret, name: object.}]\n", "children[0]: name: "},
		"a name from a field that does not exist": {
			least + "children: [{apiVersion: v1, kind: Secret, name: object.spec.prefixx}]\n", "children[0]: name: object.spec.prefixx, for the sample: no such key: prefixx",
		},
		"a name that is not a string":   {least + "children: [{apiVersion: v1, kind: Secret, name: object.spec.size}]\n", "object.spec.size is 2 for the sample, not a string"},
		"a program that does not exist": {"crds: [crd.yaml]\nsample: sample.yaml\ncommand: [./sit]\n", "command: the program can't be started: "},
		"a placeholder that does not exist": {
			"crds: [crd.yaml]\nsample: sample.yaml\ncommand: [sh, \"{{.Namspace}}\"]\n", "can't evaluate field Namspace",
		},
		"a sample that does not exist": {"crds: [crd.yaml]\nsample: absent.yaml\ncommand: [sh]\n", "sample: read a manifest: open "},
		"labels of a child whose name is known": {
			least + "children: [{apiVersion: v1, kind: Secret, labels: {a: b}}]\n", "children[0]: labels are for a child whose name is generated",
		},
		"a retained child whose name is generated": {
			least + "children: [{apiVersion: v1, kind: Secret, generated: true, retained: true}]\n", "children[0]: a child with a generated name is identified by its controller reference, so unowned of the child and retained of the child are not possible",
		},
		"a child without a kind":                  {least + "children: [{apiVersion: v1}]\n", `children[0]: apiVersion "v1" and kind "" don't name a kind`},
		"a patch that changes nothing":            {least + "children: [{apiVersion: v1, kind: Secret, drift: {nothing: {}}}]\n", `patch "nothing": the patch is empty`},
		"a duration without a unit":               {least + "timeout: \"20\"\n", `timeout: "20" is not a positive duration such as 30s`},
		"a negative number of trials":             {least + "parallel: -1\n", "parallel: -1 is not a positive number"},
		"a pause without a unit":                  {least + "maxPause: 5\n", "maxPause"},
		"roles that do not exist":                 {least + "roles: [rbac]\n", "roles: stat "},
		"a folder without roles":                  {least + "roles: [.]\n", "contains a Role or a ClusterRole"},
		"webhooks without a place to serve them":  {least + "webhooks: [manifests.yaml]\n", "webhooks: command must tell the operator where to serve them, for example with --webhook-port={{.WebhookPort}}"},
		"a field to normalize that is not a path": {least + "normalize: [{kind: Secret, fields: [data.password]}]\n", `"data.password" is not a JSON pointer`},
		"a placeholder without quotes":            {least + "prepare: [{apiVersion: v1, kind: Secret, metadata: {name: {{.Namespace}}}}]\n", `put a text that begins with a placeholder into quotes: "{{.Namespace}}"`},
		"a tab instead of spaces":                 {"crds:\n\t- crd.yaml\n", "found character that cannot start any token"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(t, test.content)
			NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(test.want), ContainSubstring("operatortest.yaml"))))
		})
	}
	_, err := Load(filepath.Join(t.TempDir(), "operatortest.yaml"), "")
	NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("there is no "), HaveSuffix("write one, or name another file with --file"))))
}

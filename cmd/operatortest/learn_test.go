package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/operatortest/config"
	"example.com/operator-workshop/operatortest/learn"
)

const shell = "../../operatortest/examples/shell/"

func learnShell(file string, command ...string) learnOptions {
	return learnOptions{file: file, Options: learn.Options{
		CRDs: []string{shell + "crd.yaml"}, Sample: shell + "sample.yaml", Roles: []string{shell + "role.yaml"}, Command: command, Timeout: time.Minute,
	}}
}

// The draft that "operatortest learn" writes for the example must describe what the example does.
func TestLearn(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "operatortest.yaml")
	var output bytes.Buffer
	g.Expect(runLearn(t.Context(), learnShell(file, shell+"greeter.sh"), &output)).To(Succeed())
	g.Expect(output.String()).To(ContainSubstring("operatortest run -f " + file))

	operator, err := config.Load(file, "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(operator.MaxWrites).To(Equal(2))
	g.Expect(operator.Roles).To(HaveLen(1))
	g.Expect(operator.Normalize).To(BeNil())
	g.Expect(operator.Children).To(HaveLen(1))
	child := operator.Children[0]
	g.Expect(child.Kind).To(Equal(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}))
	g.Expect(child.Drift).To(ConsistOf(`{"data":{"text":"changed"}}`))

	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(And(
		ContainSubstring(`  name: object.metadata.name + "-greeting"`+"\n"),
		ContainSubstring(`converged: object.status.phase == "Greeted" && object.status.observedGeneration == object.metadata.generation`+"\n"),
		ContainSubstring("#   failover: it has no leader election\n"),
		Not(ContainSubstring("no controller reference")),
	))
	resource := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "other", "generation": int64(2)}}}
	g.Expect(child.NameFor(resource)).To(Equal("other-greeting"))
	resource.Object["status"] = map[string]any{"phase": "Greeted", "observedGeneration": int64(2)}
	g.Expect(operator.Converged(resource)).To(Succeed())

	err = runLearn(t.Context(), learnShell(file, shell+"greeter.sh"), &output)
	g.Expect(err).To(MatchError(file + " already exists: overwrite it with --force, or name another file with -o"))

	below := filepath.Join(file, "operatortest.yaml")
	err = runLearn(t.Context(), learnShell(below, shell+"greeter.sh"), &output)
	g.Expect(err).To(MatchError("the file of -o: lstat " + below + ": not a directory"))
}

func TestLearnReportsAnOperatorThatDoesNotWork(t *testing.T) {
	tests := map[string]struct {
		timeout time.Duration
		script  string
		want    string
	}{
		"an operator that exits": {time.Minute, "echo no token >&2; exit 3", "the operator exited before it was told to stop (exit status 3); its last lines:\nno token"},
		"an operator that idles": {2 * time.Second, "echo idle; exec sleep 100", "the operator wrote nothing within 2s: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "operatortest.yaml")
			options := learnShell(file, "sh", "-c", test.script)
			options.Timeout = test.timeout
			err := runLearn(t.Context(), options, &bytes.Buffer{})
			g.Expect(err).To(MatchError(HavePrefix(test.want)))
			g.Expect(file).NotTo(BeAnExistingFile())
		})
	}
}

func TestLearnNeedsTheDashes(t *testing.T) {
	for _, args := range [][]string{{}, {"./greeter.sh"}, {"./greeter.sh", "--", "--now"}} {
		command := newLearnCommand()
		command.SetArgs(append([]string{"--crd", shell + "crd.yaml", "--sample", shell + "sample.yaml", "-o", filepath.Join(t.TempDir(), "new.yaml")}, args...))
		command.SilenceErrors, command.SilenceUsage = true, true
		NewWithT(t).Expect(command.Execute()).To(MatchError(HavePrefix(`after "--", give the command that starts the operator`)))
	}
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/behaviours"
)

// TestGrowthOfAProcess tests the example operator and a mutant, which leaves a process running for each ConfigMap that
// it writes.
func TestGrowthOfAProcess(t *testing.T) {
	tryGrowth := func(t *testing.T, file string) (output string, err error) {
		t.Helper()
		t.Parallel()
		var printed bytes.Buffer
		err = run(t.Context(), runOptions{file: file, Options: behaviours.Options{Only: []string{"growth"}}}, &printed)
		return printed.String(), err
	}
	t.Run("the example", func(t *testing.T) {
		output, err := tryGrowth(t, example)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), output)
	})
	t.Run("the mutant", func(t *testing.T) {
		if _, err := os.Stat("/proc/self/stat"); err != nil {
			t.Skip("without /proc, the kit can't measure a process")
		}
		output, err := tryGrowth(t, leakyExample(t))
		g := NewWithT(t)
		g.Expect(err).To(MatchError(errLacking), output)
		g.Expect(output).To(ContainSubstring("the operator has more threads or processes after every 2 rounds: ["))
	})
}

// leakyExample copies the example, and changes the copy so that it leaks a process on each write. It returns the path
// of the copy's operatortest.yaml.
func leakyExample(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "leaks")
	g.Expect(os.CopyFS(dir, os.DirFS(shell))).To(Succeed())
	script := filepath.Join(dir, "greeter.sh")
	content, err := os.ReadFile(script)
	g.Expect(err).NotTo(HaveOccurred())
	const applies = "\t\t\tkubectl apply "
	g.Expect(string(content)).To(ContainSubstring(applies))
	g.Expect(os.WriteFile(script, []byte(strings.Replace(string(content), applies, "\t\t\tsleep 1000 &\n"+applies, 1)), 0o700)).To(Succeed())
	return filepath.Join(dir, "operatortest.yaml")
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/tools/txtar"
)

// Section 1.1 of playedChapter shows the source of add, and fails if the source contains no plus sign between spaces.
const playedChapter = `# The toy

## 1.1 Adding

` + "```console" + `
$ grep '^func add' 09-toy/toy.go
func add(a, b int) int { return a + b }
$ grep -q ' + ' 09-toy/toy.go
` + "```" + `

## 1.2 Greeting

` + "```console" + `
$ grep -q Sprintf 09-toy/toy.go
` + "```" + `

## 1.3 The end

` + "```console cleanup" + `
$ echo removed >removed
` + "```" + `
`

// checkPlays adds a small stage to the checkout, and tests that `make stage-9 check PLAY=1` plays its chapter with
// the learner's copy.
func (c checkout) checkPlays(t *testing.T) {
	g := NewWithT(t)
	archive, err := txtar.ParseFile("../../internal/exercise/testdata/toy.txtar")
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range archive.Files {
		if name, found := strings.CutPrefix(file.Name, "01-toy/"); found {
			path := filepath.Join(c.root, "09-toy", name)
			g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(path, file.Data, 0o644)).To(Succeed())
		}
	}
	g.Expect(os.WriteFile(filepath.Join(c.root, "09-toy", "go.sum"), nil, 0o644)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(c.root, "docs", "9-toy.md"), []byte(playedChapter), 0o644)).To(Succeed())
	workspace := filepath.Join(c.root, "go.work")
	g.Expect(os.WriteFile(workspace, []byte(read(workspace)+"\nuse ./09-toy\n"), 0o644)).To(Succeed())
	settings := []string{"KUBECONFIG=" + foreignCluster(t)}
	stage := func(args ...string) string {
		t.Helper()
		out, _ := c.run(t, ".", settings, "make", append([]string{"stage-9"}, args...)...)
		return out
	}
	check := func() string {
		t.Helper()
		return stage("check", "PLAY=1", "CLUSTER=current", "YES=1")
	}
	g.Expect(check()).To(ContainSubstring("work/09-toy does not exist: `make stage-9 start` creates it"))
	g.Expect(stage("start")).To(ContainSubstring("work/09-toy is yours"))
	g.Expect(check()).To(And(ContainSubstring("No section of the chapter is done yet"), ContainSubstring("Step 1.1, 1 of 3")))

	stage("solve")
	out, status := c.run(t, ".", nil, "make", "stage-9", "check", "PLAY=1", "CLUSTER=current", "KUBECONFIG=/nowhere/config")
	g.Expect(status).NotTo(BeZero())
	g.Expect(out).To(ContainSubstring("there is no kubeconfig /nowhere/config"))
	toy := filepath.Join(c.root, "work", "09-toy", "toy.go")
	sum := "return a + b"
	write := func(expression string) {
		t.Helper()
		content := read(toy)
		g.Expect(content).To(ContainSubstring(sum))
		g.Expect(os.WriteFile(toy, []byte(strings.Replace(content, sum, expression, 1)), 0o644)).To(Succeed())
		sum = expression
	}
	g.Expect(check()).To(And(
		ContainSubstring("Playing the chapter up to section 1.1 with your copy"),
		ContainSubstring("$ grep '^func add' work/09-toy/toy.go"),
		ContainSubstring("Up to section 1.1, your copy does what the chapter shows."),
		ContainSubstring("Step 1.2a, 2 of 3"),
		Not(ContainSubstring("also plays the chapter")),
	))
	g.Expect(filepath.Join(c.root, "removed")).To(BeARegularFile(), "the cleanup must have run")
	write("return b + a")
	g.Expect(check()).To(And(
		ContainSubstring("all commands end as the chapter shows, but some print something else"),
		ContainSubstring("  steps   1.1 Add two numbers\n  open    docs/9-toy.md:6\n  found   the output differs"),
		ContainSubstring("  repeat  make stage-9 OWN=1 FROM=1.1"),
		ContainSubstring("Step 1.2a, 2 of 3"),
	))
	write("return b - -a")
	g.Expect(check()).To(And(
		ContainSubstring("Section 1.1 of the chapter: with your copy, a command does not end as the chapter shows"),
		ContainSubstring("  open    docs/9-toy.md:8\n  found   exit status 1, want 0\n"),
		Not(ContainSubstring("Step 1.2a")),
	))
	write("return b +")
	g.Expect(check()).NotTo(ContainSubstring("Playing"), "a program that does not compile must not be played")
	write("return a + b")

	stage("solve", "STEP=1.2a")
	stage("solve", "STEP=1.2b")
	out, status = c.run(t, ".", settings, "make", "stage-9", "check", "PLAY=1", "CLUSTER=current", "YES=1")
	g.Expect(status).To(BeZero(), out)
	g.Expect(out).To(And(ContainSubstring("still done  1.2b"), ContainSubstring("Up to section 1.2, your copy"), ContainSubstring("All 3 steps of stage 9 are done")))
	stage("break", "sum")
	g.Expect(check()).To(ContainSubstring("the chapter can't be played while your copy contains the break sum: fix the break first"))

	// The checks of this stage need no control plane, but the first check starts the keeper in any case.
	out, status = c.run(t, ".", nil, "make", "down", "NAME=no-cluster")
	g.Expect(status).To(BeZero(), out)
	g.Expect(out).To(ContainSubstring("Ended the control plane that was kept for the next check"))
}

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/repo"
)

// runMake runs make in the repository's root and returns what it prints and its exit status.
func runMake(t *testing.T, args ...string) (string, int) {
	t.Helper()
	r, err := repo.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "make", args...)
	command.Dir = r.Root
	// If make runs this test, its goals and flags must not reach the make under test.
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); name != "MAKEFLAGS" && name != "MAKELEVEL" && name != "MFLAGS" {
			command.Env = append(command.Env, entry)
		}
	}
	out, _ := command.CombinedOutput()
	return string(out), command.ProcessState.ExitCode()
}

func TestMakeHelpListsTheTargets(t *testing.T) {
	g := NewWithT(t)
	out, status := runMake(t, "help")
	g.Expect(status).To(BeZero())
	for _, target := range []string{"up", "down", "status", "doctor", "shell", "reset", "kind-load", "tour", "test", "bench", "generate", "verify", "lint", "stage-0", "stage-1", "stage-8"} {
		g.Expect(out).To(MatchRegexp(`(?m)^  ` + target + ` +\S`))
	}
	g.Expect(out).To(And(ContainSubstring("make stage-N help"), ContainSubstring("make stage-N check [PLAY=1")))
	out, status = runMake(t, "stage-1", "help")
	g.Expect(status).To(BeZero())
	for _, target := range []string{"install", "test"} {
		g.Expect(out).To(MatchRegexp(`(?m)^  ` + target + ` +\S`))
	}
}

func TestMakeRefusesMistakes(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"an unknown stage":                                 {[]string{"stage-9"}, `there is no stage "stage-9": choose one of 0, 1, 2, 3, 4, 5, 6`},
		"an unknown stage with a verb":                     {[]string{"stage-9", "test"}, `there is no stage "stage-9": choose one of 0, 1, 2, 3, 4, 5, 6`},
		"a word instead of the stage's number":             {[]string{"stage-one"}, `there is no stage "stage-one"`},
		"an unknown verb":                                  {[]string{"stage-1", "tests"}, `stage 1 has no target "tests": choose from help, install`},
		"a misspelled verb of the exercises":               {[]string{"stage-1", "chek"}, "for your own copy: start, check, watch"},
		"a verb for a stage without targets":               {[]string{"stage-0", "install"}, "stage 0 has only a chapter"},
		"an unknown step of a chapter":                     {[]string{"stage-1", "FROM=1.99"}, "docs/1-crd-only.md has no step 1.99: choose one of 1.1, 1.2, 1.3, "},
		"FROM with a verb":                                 {[]string{"stage-1", "test", "FROM=1.2"}, "FROM works only when a chapter is played: `make stage-1 FROM=1.2`, without test"},
		"PLAY without check":                               {[]string{"stage-1", "PLAY=1"}, "PLAY=1 works only with check: `make stage-1 check PLAY=1`; `make stage-1 OWN=1` only plays"},
		"PLAY with another verb":                           {[]string{"stage-1", "hint", "PLAY=1"}, "PLAY=1 works only with check, not with hint: `make stage-1 check PLAY=1`"},
		"PLAY with a STEP":                                 {[]string{"stage-1", "check", "PLAY=1", "STEP=1.2a"}, "so it takes no STEP"},
		"break with a STEP":                                {[]string{"stage-2", "break", "STEP=2.3"}, "break changes a finished copy and takes no STEP"},
		"PLAY for a stage without exercises":               {[]string{"stage-8", "check", "PLAY=1"}, "stage 8 has no exercises"},
		"an unknown target":                                {[]string{"upp"}, "there is no target upp"},
		"an unknown stage for reset":                       {[]string{"reset", "STAGE=9"}, `there is no stage "9"`},
		"an unknown provider":                              {[]string{"up", "CLUSTER=minikube"}, "choose one of embedded, kind, current"},
		"a name with capitals":                             {[]string{"up", "NAME=Demo"}, `cluster name "Demo"`},
		"a word instead of a port":                         {[]string{"up", "PORT=https"}, `--port takes a number, not "https"`},
		"a missing kubeconfig":                             {[]string{"up", "CLUSTER=current", "KUBECONFIG=/nowhere/config"}, "there is no kubeconfig /nowhere/config"},
		"kind-load without an image":                       {[]string{"kind-load", "CLUSTER=kind"}, "which image? set IMG=NAME:TAG"},
		"kind-load without CLUSTER=kind":                   {[]string{"kind-load", "IMG=operator:v1"}, "not with CLUSTER=embedded: set CLUSTER=kind"},
		"a negative number of nodes":                       {[]string{"up", "NODES=-1"}, "-1 nodes"},
		"a provider for which the chapter has no commands": {[]string{"stage-8", "CLUSTER=kind"}, "docs/8-aggregated-api.md has no commands for CLUSTER=kind"},
		"check for a stage without exercises":              {[]string{"stage-8", "check"}, "stage 8 has no exercises: `make stage-8` plays its chapter"},
		"an unknown provider for a stage":                  {[]string{"stage-1", "CLUSTER=minikube"}, "choose one of embedded, kind, current"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, status := runMake(t, c.args...)
			g.Expect(status).NotTo(BeZero(), out)
			g.Expect(out).To(ContainSubstring(c.want))
			g.Expect(out).NotTo(ContainSubstring("goroutine"))
		})
	}
}

func TestMakeTargets(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "Makefile")
	g.Expect(os.WriteFile(path, []byte("VERSION := 1\ninstall: manifests ## Install the CRDs.\nmanifests:\n\techo\ndocker-build: ## Build.\nIMG ?= a:b ## no target\n"), 0o644)).To(Succeed())
	g.Expect(makeTargets(path)).To(Equal([]string{"install", "docker-build"}))
	_, err := makeTargets(filepath.Join(t.TempDir(), "Makefile"))
	g.Expect(err).To(HaveOccurred())
}

func TestEnvPrintsWhatAShellCanEvaluate(t *testing.T) {
	g := NewWithT(t)
	out := &bytes.Buffer{}
	command := newRootCommand()
	command.SetArgs([]string{"env", "--name", "demo"})
	command.SetOut(out)
	g.Expect(command.ExecuteContext(t.Context())).To(Succeed())
	shell := exec.CommandContext(t.Context(), "sh", "-c", out.String()+`printf %s "$KUBECONFIG"`)
	printed, err := shell.Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(printed)).To(HaveSuffix(filepath.Join(".workshop", "demo.kubeconfig")))
}

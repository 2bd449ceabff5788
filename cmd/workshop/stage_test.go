package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/repo"
)

// targetsWithCluster are the targets that work on the classroom cluster.
var targetsWithCluster = []string{
	"install", "uninstall", "run", "deploy", "undeploy", "samples", "cert-manager", "remove-cert-manager",
}

func TestEveryTargetOfAStageIsKnown(t *testing.T) {
	g := NewWithT(t)
	r, err := repo.Find(".")
	g.Expect(err).NotTo(HaveOccurred())
	stages, err := r.Stages()
	g.Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, stage := range stages {
		if stage.Dir == "" {
			continue
		}
		targets, err := makeTargets(filepath.Join(stage.Dir, "Makefile"))
		g.Expect(err).NotTo(HaveOccurred())
		for _, target := range targets {
			withCluster, without := slices.Contains(targetsWithCluster, target), slices.Contains(offlineVerbs, target)
			g.Expect(withCluster).NotTo(Equal(without), "make stage-%d %s: does it need a cluster? See offlineVerbs", stage.Number, target)
		}
		all = append(all, targets...)
	}
	for _, known := range slices.Concat(targetsWithCluster, offlineVerbs, linterVerbs) {
		g.Expect(all).To(ContainElement(known), "a stage must have this target")
	}
}

func TestANestedMakeRunsOneJobAtATime(t *testing.T) {
	for flags, want := range map[string]string{
		"":                                  "",
		" -j4 --jobserver-auth=3,4":         "",
		"n -j --jobserver-auth=fifo:/tmp/x": "n",
		"k -j2 --jobserver-fds=3,4 -- IMG=a -j3 YES=1": "k -- IMG=a -j3 YES=1",
		" -- NAME=x": " -- NAME=x",
	} {
		g := NewWithT(t)
		g.Expect(withoutJobs([]string{"A=-j4", "MAKEFLAGS=" + flags})).To(Equal([]string{"A=-j4", "MAKEFLAGS=" + want}), flags)
	}
}

func TestCtrlCIsAnErrorUnlessItEndsAProgram(t *testing.T) {
	const fakeMake = `#!/bin/sh
for target; do :; done
echo "$target" >>"$MADE"
[ "$target" != "$HANGING" ] || { trap 'exit 1' INT; while :; do sleep 0.01; done; }
[ "$target" != "$KILLED" ] || kill -INT $$
`
	cases := map[string]struct {
		verbs   []string
		hanging string // the target that runs until this program ends it after Ctrl-C
		killed  string // the target that Ctrl-C ends before this program receives it
		want    string
		made    string
	}{
		"a program":                           {[]string{"emulator"}, "emulator", "", "", "emulator\n"},
		"a program after another verb":        {[]string{"help", "emulator"}, "emulator", "", "", "help\nemulator\n"},
		"a verb before a program":             {[]string{"help", "emulator"}, "help", "", "interrupted", "help\n"},
		"verbs without a program":             {[]string{"build", "help"}, "help", "", "interrupted", "help\n"},
		"a program that Ctrl-C ends directly": {[]string{"help", "emulator"}, "", "emulator", "", "help\nemulator\n"},
		"a verb that Ctrl-C ends directly":    {[]string{"help", "emulator"}, "", "help", "interrupted", "help\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			made := filepath.Join(t.TempDir(), "made")
			program := filepath.Join(t.TempDir(), "make")
			g.Expect(os.WriteFile(program, []byte(fakeMake), 0o755)).To(Succeed())
			t.Setenv("MAKE", program)
			t.Setenv("MADE", made)
			t.Setenv("HANGING", c.hanging)
			t.Setenv("KILLED", c.killed)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			command := newRootCommand()
			command.SetArgs(append([]string{"stage", "6"}, c.verbs...))
			command.SetOut(io.Discard)
			ended := make(chan error, 1)
			go func() { ended <- command.ExecuteContext(ctx) }()
			if c.hanging != "" {
				g.Eventually(func() string { return read(made) }).WithTimeout(time.Minute).Should(ContainSubstring(c.hanging))
				interrupt()
			}
			var err error
			g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(&err))
			if c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(c.want))
			}
			g.Expect(read(made)).To(Equal(c.made))
		})
	}
}

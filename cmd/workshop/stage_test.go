package main

import (
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/repo"
)

// targetsWithCluster are those that work on the classroom cluster.
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
		g.Expect(all).To(ContainElement(known), "no stage has this target")
	}
}

func TestAMakeBelowAnotherRunsOneJobAtATime(t *testing.T) {
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

func TestCtrlCIsTheWayToEndAProgramThatRuns(t *testing.T) {
	g := NewWithT(t)
	g.Expect(stopped([]string{"install", "run"})).To(Succeed())
	g.Expect(stopped([]string{"emulator"})).To(Succeed())
	g.Expect(stopped([]string{"test"})).To(MatchError("interrupted"))
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/exercise"
	"example.com/operator-workshop/internal/repo"
)

// threeStages returns three stages with three steps each, in one checkout. None has a copy.
func threeStages(g Gomega, t *testing.T) []*exercise.Stage {
	root := toyCheckout(g, t)
	var stages []*exercise.Stage
	for number, name := range []string{"01-toy", "02-toy", "03-toy"} {
		dir := filepath.Join(root, name)
		if number > 0 {
			g.Expect(os.CopyFS(dir, os.DirFS(filepath.Join(root, "01-toy")))).To(Succeed())
		}
		stage, err := exercise.Load(repo.Repo{Root: root}, repo.Stage{Number: number + 1, Name: name[1:], Dir: dir})
		g.Expect(err).NotTo(HaveOccurred())
		stages = append(stages, stage)
	}
	return stages
}

// start makes a copy that was last changed the given number of minutes ago, and records the steps as done.
func start(g Gomega, stage *exercise.Stage, minutes int, done ...string) {
	own := stage.Copy(func(string, ...string) error { return errors.New("nothing is made here") })
	g.Expect(own.Start()).To(Succeed())
	at := time.Now().Add(-time.Duration(minutes) * time.Minute)
	g.Expect(filepath.WalkDir(own.Path, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, at, at))
	})).To(Succeed())
	progress, err := os.OpenFile(filepath.Join(stage.Root, "work", "progress.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	g.Expect(err).NotTo(HaveOccurred())
	defer progress.Close()
	for _, step := range done {
		_, err := progress.WriteString(filepath.Base(stage.Dir) + " " + step + " 2026-01-01\n")
		g.Expect(err).NotTo(HaveOccurred())
	}
}

func TestProgressSuggestsTheNextCommand(t *testing.T) {
	all := []string{"1.1", "1.2a", "1.2b"}
	for name, test := range map[string]struct {
		begin func(g Gomega, stages []*exercise.Stage)
		shown []string
		last  string
	}{
		"no stage is started": {
			begin: func(Gomega, []*exercise.Stage) {},
			shown: []string{"stage 1  ...                   0 of  3  toy"},
			last:  "Go on with: make stage-1 start\n",
		},
		"two stages are started": {
			begin: func(g Gomega, stages []*exercise.Stage) {
				start(g, stages[0], 10, "1.1")
				start(g, stages[2], 5, "1.1", "1.2a")
			},
			shown: []string{"stage 1  #..                   1 of  3", "stage 3  ##.                   2 of  3"},
			last:  "Go on with: make stage-3 check\n",
		},
		"the earlier stage was changed last": {
			begin: func(g Gomega, stages []*exercise.Stage) {
				start(g, stages[0], 5, "1.1")
				start(g, stages[2], 10, "1.1", "1.2a")
			},
			last: "Go on with: make stage-1 check\n",
		},
		"the only started stage is done": {
			begin: func(g Gomega, stages []*exercise.Stage) { start(g, stages[1], 5, all...) },
			shown: []string{"stage 2  ###                   3 of  3"},
			last:  "Go on with: make stage-3 start\n",
		},
		"the last stage is done, but an earlier one is not": {
			begin: func(g Gomega, stages []*exercise.Stage) { start(g, stages[2], 5, all...) },
			last:  "Go on with: make stage-1 start\n",
		},
		"everything is done": {
			begin: func(g Gomega, stages []*exercise.Stage) {
				for _, stage := range stages {
					start(g, stage, 5, all...)
				}
			},
			last: "All steps are done.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			stages := threeStages(g, t)
			test.begin(g, stages)
			shown := &screen{}
			g.Expect(printProgress(shown, stages)).To(Succeed())
			for _, line := range test.shown {
				g.Expect(shown.all()).To(ContainSubstring(line))
			}
			g.Expect(shown.all()).To(HaveSuffix(test.last))
		})
	}
}

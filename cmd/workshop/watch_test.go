package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"example.com/operator-workshop/internal/exercise"
	"example.com/operator-workshop/internal/repo"
)

// screen records what is printed.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(text)
}

// all returns everything printed so far.
func (s *screen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// toyCheckout returns the root of a checkout that has a stage with three small steps.
func toyCheckout(g Gomega, t *testing.T) (root string) {
	archive, err := txtar.ParseFile("../../internal/exercise/testdata/toy.txtar")
	g.Expect(err).NotTo(HaveOccurred())
	root = t.TempDir()
	for _, file := range archive.Files {
		path := filepath.Join(root, file.Name)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, file.Data, 0o644)).To(Succeed())
	}
	return root
}

// toyCopy returns a learner's new copy of a stage with three small steps.
func toyCopy(g Gomega, t *testing.T) *exercise.Copy {
	root := toyCheckout(g, t)
	stage, err := exercise.Load(repo.Repo{Root: root}, repo.Stage{Number: 1, Name: "1-toy", Dir: filepath.Join(root, "01-toy")})
	g.Expect(err).NotTo(HaveOccurred())
	own := stage.Copy(func(string, ...string) error { return errors.New("nothing is made here") })
	g.Expect(own.Start()).To(Succeed())
	return own
}

func TestWatchRefusesAStepThatDoesNotExist(t *testing.T) {
	g := NewWithT(t)
	command := &cobra.Command{}
	command.SetContext(t.Context())
	g.Expect((&app{}).watch(command, toyCopy(g, t), "1.2")).To(MatchError("section 1.2 has the steps 1.2a and 1.2b: name one, such as STEP=1.2a"))
}

func TestWatchChecksAfterEachChange(t *testing.T) {
	g := NewWithT(t)
	own := toyCopy(g, t)
	shown := &screen{}
	cmd := &cobra.Command{}
	cmd.SetOut(shown)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd.SetContext(ctx)
	changes, err := own.Changes(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	keys, ended := make(chan byte), make(chan error, 1)
	w := &watcher{app: &app{repo: repo.Repo{Root: own.Root}}, cmd: cmd, own: own, out: shown}
	unlock, err := own.Lock("check")
	g.Expect(err).NotTo(HaveOccurred())
	go func() { ended <- w.run(ctx, changes, keys) }()
	sees := func(text string, times int) {
		t.Helper()
		g.Eventually(func() int { return strings.Count(shown.all(), text) }).WithTimeout(time.Minute).Should(Equal(times), "%q", text)
	}
	sees("Waiting for the `make stage-1 check`", 1)
	g.Expect(unlock()).To(Succeed())
	sees("Step 1.1, 1 of 3", 1)
	sees("Checked.", 1)

	toy := filepath.Join(own.Path, "toy.go")
	content, err := os.ReadFile(toy)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(toy, content, 0o644)).To(Succeed())
	g.Consistently(func() int { return strings.Count(shown.all(), "Checked.") }).Should(Equal(1), "a save without a change must not be checked")
	solved := strings.Replace(string(content), "return 0", "return a + b", 1)
	g.Expect(solved).NotTo(Equal(string(content)))
	g.Expect(os.WriteFile(toy, []byte(solved), 0o644)).To(Succeed())
	sees("done  1.1", 1)
	sees("Checked.", 2)

	keys <- 'n'
	sees("Step 1.2a, 2 of 3", 1)
	sees("Checked.", 3)
	keys <- 'h'
	sees("Use fmt.", 1)
	keys <- 's'
	sees("Step 1.2a is solved", 1)
	sees("done  1.2a", 1)
	keys <- 'q'
	g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
}

func TestOneWatchAtATime(t *testing.T) {
	g := NewWithT(t)
	own := toyCopy(g, t)
	unlock, err := own.Lock("watch")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = own.Lock("watch")
	g.Expect(err).To(MatchError(ContainSubstring("another `make stage-1 watch` is running in work/01-toy")))
	g.Expect(unlock()).To(Succeed())
	unlock, err = own.Lock("watch")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unlock()).To(Succeed())
}

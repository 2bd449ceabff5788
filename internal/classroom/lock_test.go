package classroom

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/repo"
)

func TestLockSaysWhatItWaitsFor(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "state", "demo.lock")
	unlock, err := lock(t.Context(), path, io.Discard, time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	info, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)), "other users must not be able to hold it")

	out := &bytes.Buffer{}
	self := "another command (process " + strconv.Itoa(os.Getpid()) + ")"
	_, err = lock(t.Context(), path, out, 10*time.Millisecond)
	g.Expect(err).To(MatchError(And(ContainSubstring(self), ContainSubstring("end it"))), "the wait must have a limit")
	g.Expect(out.String()).To(Equal("Waiting for " + self + " to finish.\n"))

	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lock(over, path, io.Discard, time.Minute)
	g.Expect(err).To(MatchError(errInterrupted))

	unlock()
	again, err := lock(t.Context(), path, io.Discard, time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	again()
}

func TestChooseAndUnchoose(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	options := Options{Repo: repo.Repo{Root: t.TempDir()}, Name: DefaultName}
	state := options.Repo.State()
	g.Expect(os.Mkdir(state, 0o700)).To(Succeed())
	path := func(name string) string { return filepath.Join(state, name+".kubeconfig") }
	link := filepath.Join(state, "kubeconfig")
	complete := func(name string, age time.Duration) {
		g.Expect(os.WriteFile(path(name), nil, 0o600)).To(Succeed())
		g.Expect(os.Chtimes(path(name), time.Time{}, time.Now().Add(-age))).To(Succeed())
		g.Expect(record{Phase: phaseReady}.write(filepath.Join(state, name+".json"))).To(Succeed())
	}
	complete("first", 2*time.Hour)
	complete("second.kind", time.Hour)
	g.Expect(os.WriteFile(path("half.kind"), nil, 0o600)).To(Succeed())
	g.Expect(record{Phase: phaseCreating}.write(filepath.Join(state, "half.kind.json"))).To(Succeed())
	g.Expect(os.WriteFile(path(copyPrefix+"1"), nil, 0o600)).To(Succeed()) // like a copy of a learner's own kubeconfig
	g.Expect(choose(ctx, options, path("first"))).To(Succeed())

	var all sync.WaitGroup
	errs := [20]error{}
	for i := range errs {
		all.Go(func() {
			other := path(fmt.Sprint("other-", i))
			errs[i] = errors.Join(os.WriteFile(other, nil, 0o600), choose(ctx, options, other), os.Remove(other), unchoose(ctx, state, other))
		})
	}
	all.Wait()
	g.Expect(errs).To(HaveEach(BeNil()))
	g.Expect(os.Readlink(link)).To(Equal("second.kind.kubeconfig"), "the newest complete cluster must be chosen")

	named := options
	named.Name = "named"
	complete("named", 0)
	g.Expect(choose(ctx, named, path("named"))).To(Succeed())
	g.Expect(os.Readlink(link)).To(Equal("second.kind.kubeconfig"), "a cluster with a name of its own must leave the link alone")
	g.Expect(os.Remove(path("second.kind"))).To(Succeed())
	g.Expect(choose(ctx, named, path("named"))).To(Succeed())
	g.Expect(os.Readlink(link)).To(Equal("named.kubeconfig"), "a link that points nowhere must be replaced")
	g.Expect(choose(ctx, options, path("first"))).To(Succeed())
	g.Expect(os.Readlink(link)).To(Equal("first.kubeconfig"), "the default cluster must take the link back")

	g.Expect(os.Remove(path("named"))).To(Succeed())
	g.Expect(unchoose(ctx, state, path("named"))).To(Succeed())
	g.Expect(os.Readlink(link)).To(Equal("first.kubeconfig"), "removing another cluster must change nothing")
	g.Expect(os.Remove(path("first"))).To(Succeed())
	g.Expect(choose(ctx, options, path("first"))).To(Succeed(), "a cluster that another command has just removed must not be an error")
	g.Expect(unchoose(ctx, state, path("first"))).To(Succeed())
	g.Expect(link).NotTo(BeAnExistingFile(), "without a cluster, there must be no link")
}

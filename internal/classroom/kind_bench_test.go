package classroom_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/shirou/gopsutil/v4/process"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/kube/kubetest"
	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/repo"
)

// The fake docker and kind keep their state in files under $FAKE: the cluster's containers, docker's images, and the kind
// commands that were run. A file named hang makes every kind command except delete wait once its work is done.
const (
	fakeDocker = `#!/bin/sh
if [ -f "$FAKE/down" ]; then cat "$FAKE/down" >&2; exit 1; fi
case "$1" in
version) echo 28.0.0 ;;
ps) [ ! -f "$FAKE/containers" ] || cat "$FAKE/containers" ;;
start) shift; echo "$@" > "$FAKE/started"; sed -i.old s/exited/running/ "$FAKE/containers" ;;
image) for image; do :; done; grep -qx "$image" "$FAKE/images" || { echo "Error: No such image: $image" >&2; exit 1; } ;;
*) echo "no such command: $1" >&2; exit 1 ;;
esac
`
	fakeKind = `#!/bin/sh
echo "$*" >> "$FAKE/commands"
last= kubeconfig=
for each; do [ "$last" != --kubeconfig ] || kubeconfig=$each; last=$each; done
case "$1" in
create) for each in $KIND_FAKE_NODES; do echo "$each-id $each running" >> "$FAKE/containers"; done
  if [ -f "$FAKE/refuse" ]; then cat "$FAKE/refuse" >&2; exit 1; fi
  cp "$FAKE/kubeconfig" "$kubeconfig" ;;
delete) rm -f "$FAKE/containers" ;;
export) cp "$FAKE/kubeconfig" "$kubeconfig" ;;
load) echo packed > "$TMPDIR/images.tar" ;;
esac
if [ -f "$FAKE/hang" ] && [ "$1" != delete ]; then sleep 600 & echo $! > "$FAKE/hanging"; wait; fi
`
)

// kindBench is a checkout with fakes of docker and kind, and of the API server.
type kindBench struct {
	repo   repo.Repo
	fake   string
	out    bytes.Buffer
	server fakeServer
}

// fakeServer behaves like an API server whose first two readiness checks fail.
type fakeServer struct{ asked atomic.Int32 }

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/readyz" && s.asked.Add(1) < 3:
		http.Error(w, "etcd is not ready", http.StatusInternalServerError)
	case r.URL.Path == "/version":
		fmt.Fprint(w, `{"gitVersion": "v1.37.1"}`)
	case r.URL.Path == "/api/v1/nodes":
		fmt.Fprint(w, `{"items": [{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}]}`)
	}
}

func newKindBench(t *testing.T) *kindBench {
	t.Helper()
	g := NewWithT(t)
	bench := &kindBench{repo: repo.Repo{Root: filepath.Join(t.TempDir(), "my workshop")}, fake: t.TempDir()}
	engine := t.TempDir()
	g.Expect(os.MkdirAll(bench.repo.Bin(), 0o755)).To(Succeed())
	for path, script := range map[string]string{
		filepath.Join(engine, "docker"):         fakeDocker,
		filepath.Join(bench.repo.Bin(), "kind"): fakeKind,
	} {
		g.Expect(os.WriteFile(path, []byte(script), 0o755)).To(Succeed())
	}
	bench.write(t, "kubeconfig", string(kubetest.YAML(t, kubetest.Serve(t, &bench.server))))
	t.Setenv("PATH", engine+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("FAKE", bench.fake)
	t.Setenv("KIND_FAKE_NODES", "control-plane worker")
	return bench
}

// cluster returns the bench's cluster as a new command would find it.
func (b *kindBench) cluster(t *testing.T, change ...func(*classroom.Options)) classroom.Cluster {
	t.Helper()
	options := classroom.Options{Repo: b.repo, Provider: providers.Kind, Name: "demo", Nodes: 2, Out: &b.out}
	for _, each := range change {
		each(&options)
	}
	cluster, err := classroom.New(options)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return cluster
}

func (b *kindBench) write(t *testing.T, name, content string) {
	t.Helper()
	NewWithT(t).Expect(os.WriteFile(filepath.Join(b.fake, name), []byte(content), 0o644)).To(Succeed())
}

// read returns what a fake has written, or "".
func (b *kindBench) read(name string) string {
	content, _ := os.ReadFile(filepath.Join(b.fake, name))
	return string(content)
}

// left returns the names of the files in .workshop, except locks and the cluster's log.
func (b *kindBench) left(g Gomega) []string {
	entries, err := os.ReadDir(b.repo.State())
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); filepath.Ext(name) != ".lock" && name != "demo.kind.log" {
			names = append(names, name)
		}
	}
	return names
}

// interrupted calls a function, interrupts it once kind hangs, and returns its error. The process that kind has started
// must end, too.
func (b *kindBench) interrupted(t *testing.T, do func(context.Context) error) error {
	t.Helper()
	b.write(t, "hang", "")
	ctx, interrupt := context.WithCancel(testContext(t))
	defer interrupt()
	result := make(chan error, 1)
	go func() { result <- do(ctx) }()
	g := NewWithT(t)
	hanging := func() (int, error) { return strconv.Atoi(strings.TrimSpace(b.read("hanging"))) }
	g.Eventually(hanging).WithTimeout(10 * time.Second).Should(BeNumerically(">", 1))
	child, err := hanging()
	g.Expect(err).NotTo(HaveOccurred())
	interrupt()
	var ended error
	g.Eventually(result).WithTimeout(20*time.Second).Should(Receive(&ended), "the interruption must end the call")
	g.Eventually(func() bool { return runs(child) }).WithTimeout(5*time.Second).Should(BeFalse(), "what kind has started must end with it")
	g.Expect(os.Remove(filepath.Join(b.fake, "hang"))).To(Succeed())
	return ended
}

// runs reports whether the process exists and is not a zombie.
func runs(pid int) bool {
	found, err := process.NewProcess(int32(pid))
	if err != nil {
		return false
	}
	status, err := found.Status()
	return err == nil && !slices.Contains(status, process.Zombie)
}

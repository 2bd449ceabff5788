package classroom_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/classroom"
)

func TestKindResetKeepsWhatWasChosen(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	bench := newKindBench(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	port := listener.Addr().(*net.TCPAddr).Port
	g.Expect(listener.Close()).To(Succeed())
	created := func() []string {
		commands := strings.Split(strings.TrimSpace(bench.read("commands")), "\n")
		return slices.DeleteFunc(commands, func(command string) bool { return !strings.HasPrefix(command, "create") })
	}

	t.Setenv(classroom.NodeImageVariable, "kindest/node:v1.36.1")
	g.Expect(bench.cluster(t, func(o *classroom.Options) { o.Port = port }).Up(ctx)).To(Succeed())

	g.Expect(bench.cluster(t).Choose(ctx)).To(Succeed())
	link := filepath.Join(bench.repo.State(), "kubeconfig")
	g.Expect(os.Readlink(link)).To(Equal("demo.kind.kubeconfig"))

	t.Setenv(classroom.NodeImageVariable, "")
	for range 2 {
		g.Expect(bench.cluster(t).Reset(ctx)).To(Succeed())
	}
	g.Expect(os.Readlink(link)).To(Equal("demo.kind.kubeconfig"))
	g.Expect(created()).To(HaveEach(HaveSuffix("--image kindest/node:v1.36.1")), "all three clusters must use this image")
	config, err := os.ReadFile(filepath.Join(bench.repo.State(), "demo.kind.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(config)).To(ContainSubstring("\n  apiServerPort: " + strconv.Itoa(port) + "\nnodes:"))

	t.Setenv(classroom.NodeImageVariable, "kindest/node:v1.37.1")
	g.Expect(bench.cluster(t).Reset(ctx)).To(Succeed())
	g.Expect(created()).To(HaveLen(4))
	g.Expect(created()[3]).To(HaveSuffix("--image kindest/node:v1.37.1"), "a reset must be able to choose another image")
}

package classroom_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/classroom"
)

func TestKindLifecycle(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	bench := newKindBench(t)
	g.Expect(bench.cluster(t).Up(ctx)).To(Succeed())
	config, err := os.ReadFile(filepath.Join(bench.repo.State(), "demo.kind.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(config)).To(And(ContainSubstring("apiServerAddress: 127.0.0.1"), HaveSuffix("- role: control-plane\n- role: worker\n")))

	g.Expect(bench.cluster(t).Up(ctx)).To(Succeed())
	g.Expect(strings.Count(bench.read("commands"), "create cluster")).To(Equal(1), "a second up must find the cluster")
	g.Expect(bench.server.asked.Load()).To(BeEquivalentTo(3), "a second up must wait until the API server is ready")
	status, err := bench.cluster(t).Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(And(HaveField("State", classroom.StateRunning), HaveField("Version", "v1.37.1"), HaveField("Nodes", 2), HaveField("ReadyNodes", 1)))
	g.Expect(os.Remove(bench.cluster(t).Kubeconfig())).To(Succeed())
	status, err = bench.cluster(t).Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(And(HaveField("State", classroom.StateBroken), HaveField("Detail", ContainSubstring("`make up CLUSTER=kind NAME=demo` writes the kubeconfig again"))))

	bench.write(t, "containers", "control-plane-id control-plane exited\nworker-id worker exited\n")
	g.Expect(bench.cluster(t).Up(ctx)).To(Succeed())
	g.Expect(bench.read("started")).To(Equal("control-plane-id worker-id\n"), "after a restart of the machine, up must start the nodes")

	g.Expect(bench.cluster(t, func(o *classroom.Options) { o.Nodes = 1 }).Reset(ctx)).To(Succeed())
	config, err = os.ReadFile(filepath.Join(bench.repo.State(), "demo.kind.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(config)).To(HaveSuffix("- role: control-plane\n- role: worker\n"), "a reset must keep the number of nodes")

	g.Expect(bench.cluster(t).Down(ctx)).To(Succeed())
	g.Expect(bench.read("containers")).To(BeEmpty())
	g.Expect(bench.left(g)).To(BeEmpty())
	g.Expect(bench.cluster(t).Down(ctx)).To(Succeed(), "a second down must not be an error")
}

func TestKindNeedsAnEngine(t *testing.T) {
	cases := map[string]struct{ says, want string }{
		"a daemon that is down":       {"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", "needs a running Docker engine: start it"},
		"a socket without permission": {"permission denied while trying to connect to the Docker daemon socket", "usermod -aG docker"},
		"an unexpected answer":        {"something else", "(docker version: something else)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			bench := newKindBench(t)
			bench.write(t, "down", c.says)
			for what, do := range map[string]func(context.Context) error{"up": bench.cluster(t).Up, "down": bench.cluster(t).Down, "reset": bench.cluster(t).Reset} {
				err := do(testContext(t))
				g.Expect(err).To(MatchError(And(ContainSubstring(c.want), ContainSubstring("leave CLUSTER out"))), what)
				g.Expect(err.Error()).NotTo(ContainSubstring("\n"), "an error must be one line")
			}
			g.Expect(bench.read("commands")).To(BeEmpty())
			g.Expect(bench.left(g)).To(BeEmpty())
		})
	}
}

func TestKindLeavesSomeoneElsesClusterAlone(t *testing.T) {
	cases := map[string]func(*testing.T, *kindBench){
		"made without the workshop": func(*testing.T, *kindBench) {},
		"made after ours was gone": func(t *testing.T, bench *kindBench) {
			NewWithT(t).Expect(bench.cluster(t).Up(testContext(t))).To(Succeed())
		},
	}
	for name, before := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			bench := newKindBench(t)
			before(t, bench)
			bench.write(t, "containers", "other-id control-plane running\n")
			bench.write(t, "commands", "")
			load := func(ctx context.Context) error { return bench.cluster(t).(classroom.ImageLoader).Load(ctx, "any:v1") }
			for what, do := range map[string]func(context.Context) error{"up": bench.cluster(t).Up, "down": bench.cluster(t).Down, "reset": bench.cluster(t).Reset, "load": load} {
				g.Expect(do(testContext(t))).To(MatchError(And(ContainSubstring("not made here"), ContainSubstring("NAME=mine"))), what)
			}
			g.Expect(bench.read("commands")).To(BeEmpty(), "a cluster that was not made here must be left alone")
		})
	}
}

func TestKindLeavesAloneAClusterThatSomeoneElseMakesMeanwhile(t *testing.T) {
	g := NewWithT(t)
	bench := newKindBench(t)
	bench.write(t, "refuse", `ERROR: failed to create cluster: node(s) already exist for a cluster with the name "demo"`)
	g.Expect(bench.cluster(t).Up(testContext(t))).To(MatchError(ContainSubstring("not made here")))
	g.Expect(bench.read("commands")).NotTo(ContainSubstring("delete"))
}

func TestAFailedKindCreationLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	bench := newKindBench(t)
	bench.write(t, "refuse", "Creating cluster\nERROR: failed to create cluster: failed to pull image \"node\": no such host\n\nCommand Output: a long story")
	err := bench.cluster(t).Up(testContext(t))
	g.Expect(err).To(MatchError(And(ContainSubstring(`failed to pull image "node": no such host`), ContainSubstring("KIND_NODE_IMAGE="))))
	g.Expect(err.Error()).NotTo(ContainSubstring("\n"), "an error must be one line")
	g.Expect(bench.read("containers")).To(BeEmpty())
	g.Expect(bench.left(g)).To(BeEmpty())
}

func TestKindRecoversFromInterruptions(t *testing.T) {
	t.Run("while it is made", func(t *testing.T) {
		g := NewWithT(t)
		bench := newKindBench(t)
		g.Expect(bench.interrupted(t, bench.cluster(t).Up)).To(MatchError(ContainSubstring("interrupted")))
		g.Expect(bench.read("containers")).To(BeEmpty())
		g.Expect(bench.left(g)).To(BeEmpty())
		g.Expect(bench.cluster(t).Up(testContext(t))).To(Succeed())
	})
	t.Run("while an image is loaded", func(t *testing.T) {
		g := NewWithT(t)
		bench := newKindBench(t)
		bench.write(t, "images", "operator:v1\n")
		g.Expect(bench.cluster(t).Up(testContext(t))).To(Succeed())
		before := bench.left(g)
		err := bench.interrupted(t, func(ctx context.Context) error {
			return bench.cluster(t).(classroom.ImageLoader).Load(ctx, "operator:v1")
		})
		g.Expect(err).To(MatchError(ContainSubstring("interrupted")))
		g.Expect(bench.left(g)).To(Equal(before), "no packed image may be left behind")
	})
	t.Run("by a kill, while it is made", func(t *testing.T) {
		g := NewWithT(t)
		bench := newKindBench(t)
		g.Expect(os.MkdirAll(bench.repo.State(), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(bench.repo.State(), "demo.kind.json"), []byte(`{"phase": "creating"}`), 0o600)).To(Succeed())
		bench.write(t, "containers", "half-id control-plane running\n")
		g.Expect(bench.cluster(t).Up(testContext(t))).To(Succeed())
		g.Expect(bench.out.String()).To(ContainSubstring("only partly created"))
		g.Expect(bench.read("containers")).To(HavePrefix("control-plane-id"))
	})
}

func TestKindUsesTheChosenPortOnlyIfItIsFree(t *testing.T) {
	g := NewWithT(t)
	bench := newKindBench(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	taken := listener.Addr().(*net.TCPAddr).Port
	chosen := func(o *classroom.Options) { o.Port = taken }
	g.Expect(bench.cluster(t, chosen).Up(testContext(t))).To(MatchError(And(ContainSubstring("port "+strconv.Itoa(taken)), ContainSubstring("PORT="))))
	g.Expect(bench.read("commands")).To(BeEmpty())
	g.Expect(bench.left(g)).To(BeEmpty())

	g.Expect(listener.Close()).To(Succeed())
	g.Expect(bench.cluster(t, chosen).Up(testContext(t))).To(Succeed())
	config, err := os.ReadFile(filepath.Join(bench.repo.State(), "demo.kind.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(config)).To(ContainSubstring("\n  apiServerPort: " + strconv.Itoa(taken) + "\nnodes:"))
}

func TestLoadNeedsAClusterAndAnImage(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	bench := newKindBench(t)
	bench.write(t, "images", "operator:v1\n")
	load := func(image string) error { return bench.cluster(t).(classroom.ImageLoader).Load(ctx, image) }
	g.Expect(load("operator:v1")).To(MatchError(ContainSubstring("`make up CLUSTER=kind NAME=demo` creates it")))
	g.Expect(bench.cluster(t).Up(ctx)).To(Succeed())
	g.Expect(load("operator:v2")).To(MatchError(And(ContainSubstring("docker has no image operator:v2"), ContainSubstring("docker-build IMG=operator:v2"))))
	g.Expect(load("operator:v1")).To(Succeed())
	g.Expect(bench.read("commands")).To(ContainSubstring("load docker-image --name demo-"))
}

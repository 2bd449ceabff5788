package classroom_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/repo"
)

func TestNewRefusesWrongOptions(t *testing.T) {
	valid := classroom.Options{Provider: providers.Embedded, Name: "demo", Nodes: 1}
	cases := map[string]struct {
		change func(*classroom.Options)
		want   string
	}{
		"a provider that does not exist": {func(o *classroom.Options) { o.Provider = "minikube" }, "choose one of embedded, kind, current"},
		"an empty name":                  {func(o *classroom.Options) { o.Name = "" }, "NAME=demo"},
		"a name that is a path":          {func(o *classroom.Options) { o.Name = "../x" }, "NAME=demo"},
		"a name with capitals":           {func(o *classroom.Options) { o.Name = "Demo" }, "NAME=demo"},
		"a name of 33 letters":           {func(o *classroom.Options) { o.Name = "abcdefghijklmnopqrstuvwxyzabcdefg" }, "NAME=demo"},
		"a port out of range":            {func(o *classroom.Options) { o.Port = 65536 }, "between 1 and 65535"},
		"no nodes":                       {func(o *classroom.Options) { o.Nodes = 0 }, "between 1 and 1000"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options := valid
			c.change(&options)
			_, err := classroom.New(options)
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

func TestMakeCommandLeadsToTheSameCluster(t *testing.T) {
	cases := map[string]struct{ provider, name, want string }{
		"the default":               {providers.Embedded, classroom.DefaultName, "make reset"},
		"another name":              {providers.Embedded, "demo", "make reset NAME=demo"},
		"kind":                      {providers.Kind, classroom.DefaultName, "make reset CLUSTER=kind"},
		"another name in kind":      {providers.Kind, "demo", "make reset CLUSTER=kind NAME=demo"},
		"the learner's own cluster": {providers.Current, "demo", "make reset CLUSTER=current"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			options := classroom.Options{Provider: c.provider, Name: c.name}
			NewWithT(t).Expect(options.MakeCommand("reset")).To(Equal(c.want))
		})
	}
}

func TestCurrentRefusesUnusableKubeconfigs(t *testing.T) {
	unreachable := `apiVersion: v1
kind: Config
current-context: nowhere
clusters: [{name: nowhere, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
users: [{name: nobody, user: {}}]
`
	cases := map[string]struct{ kubeconfig, want string }{
		"a kubeconfig that does not exist":     {"", "there is no kubeconfig"},
		"a kubeconfig that points nowhere":     {unreachable, `the cluster of context "nowhere" does not answer`},
		"a kubeconfig that chooses no context": {"apiVersion: v1\nkind: Config\n", "`kubectl config use-context NAME` chooses one"},
		"a kubeconfig that is not YAML":        {"\t{", "read the current context of"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join(t.TempDir(), "config")
			if c.kubeconfig != "" {
				g.Expect(os.WriteFile(path, []byte(c.kubeconfig), 0o600)).To(Succeed())
			}
			t.Setenv("KUBECONFIG", path)
			cluster, err := classroom.New(classroom.Options{Repo: checkout(t), Provider: providers.Current, Name: "any", Nodes: 1, Out: &bytes.Buffer{}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cluster.Up(testContext(t))).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

func TestTheLearnersOwnClusterIsNeitherResetNorRemoved(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	r := checkout(t)
	own := newCluster(t, r, "own")
	g.Expect(own.Up(ctx)).To(Succeed())
	t.Setenv("KUBECONFIG", own.Kubeconfig())
	out := &bytes.Buffer{}
	cluster, err := classroom.New(classroom.Options{Repo: r, Provider: providers.Current, Name: "any", Nodes: 1, Out: out})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.Up(ctx)).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring("Using your cluster"))
	g.Expect(cluster.Reset(ctx)).To(MatchError(ContainSubstring("never reset")))

	var asked string
	no := func(_ context.Context, question string) error { asked = question; return errors.New("no") }
	careful, err := classroom.New(classroom.Options{Repo: r, Provider: providers.Current, Name: "any", Nodes: 1, Out: out, Confirm: no})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(careful.Up(ctx)).To(MatchError("no"))
	g.Expect(asked).To(And(ContainSubstring("context own"), ContainSubstring("server https://127.0.0.1:")))

	g.Expect(cluster.Down(ctx)).To(Succeed())
	status, err := cluster.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status.State).To(Equal(classroom.StateRunning), "down must leave the learner's cluster alone")
	g.Expect(status.ReadyNodes).To(Equal(2))
}

func TestKindNeedsDocker(t *testing.T) {
	g := NewWithT(t)
	r := checkout(t)
	t.Setenv("PATH", t.TempDir())
	cluster, err := classroom.New(classroom.Options{Repo: r, Provider: providers.Kind, Name: "demo", Nodes: 1, Out: &bytes.Buffer{}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.Up(testContext(t))).To(MatchError(ContainSubstring("needs docker")))
}

func TestEnvironmentSelectsTheToolsAndTheCluster(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("PATH", "/somewhere")
	t.Setenv("KUBECONFIG", "/home/learner/config")
	r := repo.Repo{Root: t.TempDir()}
	for provider, kubeconfig := range map[string]string{
		providers.Embedded: filepath.Join(r.Root, ".workshop", "demo.kubeconfig"),
		providers.Kind:     filepath.Join(r.Root, ".workshop", "demo.kind.kubeconfig"),
		providers.Current:  "/home/learner/config",
	} {
		cluster, err := classroom.New(classroom.Options{Repo: r, Provider: provider, Name: "demo", Nodes: 1, Out: &bytes.Buffer{}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cluster.Environment()).To(ContainElements("PATH="+filepath.Join(r.Root, "bin")+":/somewhere", "KUBECONFIG="+kubeconfig))
	}
}

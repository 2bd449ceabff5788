package classroom_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/repo"
)

func TestCurrentStaysWithTheClusterThatWasConfirmed(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	r := checkout(t)
	own := newCluster(t, r, "own")
	g.Expect(own.Up(ctx)).To(Succeed())
	g.Expect(filepath.Join(r.State(), "kubeconfig")).NotTo(BeAnExistingFile(), "nothing may point to a cluster that was not chosen")
	content, err := os.ReadFile(own.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	learners := filepath.Join(t.TempDir(), "config")
	g.Expect(os.WriteFile(learners, content, 0o600)).To(Succeed())
	t.Setenv("KUBECONFIG", learners)

	elsewhere := strings.ReplaceAll(string(content), "current-context: own", "current-context: elsewhere")
	var asked string
	switchThen := func(_ context.Context, question string) error {
		asked = question
		return os.WriteFile(learners, []byte(elsewhere), 0o600)
	}
	out := &bytes.Buffer{}
	cluster, err := classroom.New(classroom.Options{Repo: r, Provider: providers.Current, Name: "any", Nodes: 1, Out: out, Confirm: switchThen})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.Up(ctx)).To(Succeed())
	g.Expect(asked).To(HavePrefix("This changes your own cluster: context own, server https://127.0.0.1:"))
	g.Expect(out.String()).To(ContainSubstring("context own of " + learners))

	frozen := cluster.Kubeconfig()
	g.Expect(filepath.Dir(frozen)).To(Equal(r.State()))
	g.Expect(cluster.Environment()).To(ContainElement("KUBECONFIG=" + frozen))
	g.Expect(kubectl(ctx, r, cluster, "config", "current-context")).To(Equal("own\n"))
	g.Expect(kubectl(ctx, r, cluster, "get", "namespaces", "-o", "name")).To(ContainSubstring("namespace/default"))
	info, err := os.Stat(frozen)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	if log, err := os.ReadFile(filepath.Join(r.State(), "current.log")); err == nil {
		g.Expect(string(log)).NotTo(ContainSubstring("client-key"), "the log must not contain keys")
	}
	g.Expect(cluster.Down(ctx)).To(Succeed())
	g.Expect(frozen).NotTo(BeAnExistingFile())
}

func TestIsClassroom(t *testing.T) {
	r := repo.Repo{Root: t.TempDir()}
	if err := os.Mkdir(r.State(), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		filepath.Join(r.State(), "kubeconfig"):                            true,
		r.Root + "/01-crd-only/../.workshop/kubeconfig":                   true,
		filepath.Join(r.State(), "demo.kind.kubeconfig"):                  true,
		filepath.Join(r.State(), "current-0123.kubeconfig"):               false,
		filepath.Join(r.Root, "kubeconfig"):                               false,
		filepath.Join(r.State(), "kubeconfig") + ":/home/me/.kube/config": false,
		"": false,
	} {
		NewWithT(t).Expect(classroom.IsClassroom(r, path)).To(Equal(want), path)
	}
}

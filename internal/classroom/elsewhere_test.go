package classroom_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/repo"
)

func TestCopiedAndMovedCheckouts(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	r := checkout(t)
	cluster, _ := newCluster(t, r, "home")
	g.Expect(cluster.Up(ctx)).To(Succeed())
	running := pids(ctx, g, cluster)

	copied := repo.Repo{Root: r.Root + " copy"}
	out, err := exec.CommandContext(ctx, "cp", "-a", r.Root, copied.Root).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	twin, printed := newCluster(t, copied, "home")
	g.Expect(twin.Up(ctx)).To(MatchError(And(ContainSubstring("is a copy of the one in "+r.Root), ContainSubstring("`make down` removes the copy"))))
	g.Expect(twin.Down(ctx)).To(Succeed())
	g.Expect(printed.String()).To(ContainSubstring("what is there is left alone"))
	g.Expect(filepath.Join(copied.State(), "home.json")).NotTo(BeAnExistingFile())
	g.Expect(pids(ctx, g, cluster)).To(Equal(running), "the original goes on running")
	g.Expect(kubectl(ctx, r, cluster, "get", "namespace", "default")).To(ContainSubstring("Active"))

	link := repo.Repo{Root: r.Root + " link"}
	g.Expect(os.Symlink(r.Root, link.Root)).To(Succeed())
	moved := repo.Repo{Root: r.Root + " moved"}
	g.Expect(os.Rename(r.Root, moved.Root)).To(Succeed())
	found, _ := newCluster(t, moved, "home")
	g.Expect(found.Up(ctx)).To(MatchError(And(ContainSubstring("it was made in "+r.Root), ContainSubstring("make down"))))
	g.Expect(found.Down(ctx)).To(Succeed())
	g.Expect(below(ctx, g, r.Root)).To(BeEmpty(), "the processes of the folder that is gone end")

	g.Expect(os.Rename(moved.Root, r.Root)).To(Succeed())
	linked, _ := newCluster(t, link, "home")
	g.Expect(linked.Up(ctx)).To(Succeed())
	direct, _ := newCluster(t, r, "home")
	g.Expect(direct.Down(ctx)).To(Succeed())
	g.Expect(below(ctx, g, link.Root)).To(BeEmpty(), "one folder of two names is no copy")
}

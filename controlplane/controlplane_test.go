package controlplane_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/controlplane"
)

func TestTheLifeOfAControlPlane(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	dir := filepath.Join(t.TempDir(), "my plane, new") // neither the spaces nor the comma may cause problems
	plane, out := open(t, dir, controlplane.Options{})
	_, err := plane.Status(ctx)
	g.Expect(err).To(MatchError(controlplane.ErrNotFound), "before the first Up, there must be no control plane")
	g.Expect(plane.Snapshot(ctx, "none.db")).To(MatchError(controlplane.ErrNotFound))
	g.Expect(plane.Reset(ctx)).To(MatchError(controlplane.ErrNotFound))
	g.Expect(plane.RenewCertificates(ctx)).To(MatchError(controlplane.ErrNotFound))
	g.Expect(exists(dir)).To(BeFalse(), "only Up may create anything")

	g.Expect(plane.Up(ctx)).To(Succeed())
	status, err := plane.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status.Running()).To(BeTrue(), "%+v", status)
	g.Expect(pids(ctx, g, plane)).To(HaveLen(5))
	version, err := clientOf(g, plane).Discovery().ServerVersion()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version.GitVersion).To(Equal("v1.37.1"))
	keep(ctx, g, plane)

	t.Run("a second Up changes nothing", func(t *testing.T) {
		g := NewWithT(t)
		before := pids(ctx, g, plane)
		out.Reset()
		g.Expect(plane.Up(ctx)).To(Succeed())
		g.Expect(pids(ctx, g, plane)).To(Equal(before))
		g.Expect(out.String()).To(BeEmpty(), "without changes, there must be no output")
	})

	t.Run("running components are left alone when the others are started again", func(t *testing.T) {
		g := NewWithT(t)
		before := pids(ctx, g, plane)
		kill(g, before["kube-scheduler"])
		kill(g, before["kwok"])
		g.Expect(plane.Up(ctx)).To(Succeed())
		after := pids(ctx, g, plane)
		g.Expect(after).To(HaveLen(5))
		g.Expect(after["etcd"]).To(Equal(before["etcd"]))
		g.Expect(after["kube-scheduler"]).NotTo(Equal(before["kube-scheduler"]))
	})

	t.Run("Down keeps the data", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(plane.Down(ctx)).To(Succeed())
		g.Expect(below(g, dir)).To(BeEmpty())
		g.Expect(plane.Up(ctx)).To(Succeed())
		g.Expect(kept(ctx, g, plane)).To(BeTrue())
	})

	t.Run("the folder may be moved while the control plane is running", func(t *testing.T) {
		g := NewWithT(t)
		before := pids(ctx, g, plane)
		moved := dir + " moved"
		g.Expect(os.Rename(dir, moved)).To(Succeed())
		found, _ := open(t, moved, controlplane.Options{})
		g.Expect(pids(ctx, g, found)).To(Equal(before), "the processes must be found")
		g.Expect(found.Up(ctx)).To(Succeed())
		g.Expect(kept(ctx, g, found)).To(BeTrue())
		g.Expect(below(g, dir+"/")).To(BeEmpty(), "nothing may use the old path any more")
		g.Expect(os.Rename(moved, dir)).To(Succeed())
		g.Expect(plane.Up(ctx)).To(Succeed())
	})

	t.Run("a copy is a control plane of its own", func(t *testing.T) {
		g := NewWithT(t)
		before := pids(ctx, g, plane)
		copied := dir + " copied"
		content, err := exec.CommandContext(ctx, "cp", "-a", dir, copied).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(content))
		twin, _ := open(t, copied, controlplane.Options{})
		g.Expect(pids(ctx, g, twin)).To(BeEmpty(), "the copy must not find the processes, which belong to the original")
		g.Expect(twin.Up(ctx)).To(Succeed())
		g.Expect(kept(ctx, g, twin)).To(BeTrue())
		g.Expect(twin.Remove(ctx)).To(Succeed())
		g.Expect(pids(ctx, g, plane)).To(Equal(before))
		g.Expect(kept(ctx, g, plane)).To(BeTrue())
	})

	t.Run("Reset empties the control plane, and clients notice", func(t *testing.T) {
		g := NewWithT(t)
		list, err := clientOf(g, plane).CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(plane.Reset(ctx)).To(Succeed())
		g.Expect(kept(ctx, g, plane)).To(BeFalse())
		watch, err := clientOf(g, plane).CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err == nil {
			defer watch.Stop()
			event := <-watch.ResultChan()
			err = apierrors.FromObject(event.Object)
		}
		g.Expect(err).To(Or(Satisfy(apierrors.IsResourceExpired), Satisfy(apierrors.IsGone)), "a client's old revision must no longer exist")
	})

	t.Run("Restore goes back to any snapshot, and keeps the options of Up", func(t *testing.T) {
		g := NewWithT(t)
		stage := filepath.Join(t.TempDir(), "stage.yaml")
		g.Expect(os.WriteFile(stage, []byte("apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {name: idle}\nspec: {resourceRef: {apiGroup: v1, kind: Pod}, selector: {matchLabels: {none: none}}, next: {}}\n"), 0o600)).To(Succeed())
		special, _ := open(t, dir, controlplane.Options{Stages: []string{stage}, APIServerFlags: map[string]string{"max-connection-bytes-per-sec": "1000000000"}})
		before := pids(ctx, g, plane)
		g.Expect(special.Up(ctx)).To(Succeed())
		changed := pids(ctx, g, special)
		g.Expect(changed["etcd"]).To(Equal(before["etcd"]))
		for _, component := range []string{"kube-apiserver", "kwok"} {
			g.Expect(changed[component]).NotTo(Equal(before[component]), component)
		}
		keep(ctx, g, plane)
		t.Chdir(t.TempDir())
		g.Expect(plane.Snapshot(ctx, "before.db")).To(Succeed())
		g.Expect(plane.Reset(ctx)).To(Succeed())
		g.Expect(kept(ctx, g, plane)).To(BeFalse())
		g.Expect(plane.Restore(ctx, "mistyped.db")).To(And(MatchError(os.ErrNotExist), MatchError(ContainSubstring("mistyped.db"))))
		g.Expect(plane.Restore(ctx, "before.db")).To(Succeed())
		g.Expect(kept(ctx, g, plane)).To(BeTrue())
		after := pids(ctx, g, special)
		g.Expect(special.Up(ctx)).To(Succeed())
		g.Expect(pids(ctx, g, special)).To(Equal(after), "Restore must not lose options, which Up would have to set again")
		restored := revision(ctx, g, plane)
		g.Expect(plane.Reset(ctx)).To(Succeed())
		g.Expect(revision(ctx, g, plane)).To(BeNumerically(">", restored), "a client that has seen the restored data must not find its revision again")
	})

	t.Run("Remove leaves nothing behind", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(plane.Remove(ctx)).To(Succeed())
		g.Expect(below(g, dir)).To(BeEmpty())
		g.Expect(exists(dir)).To(BeFalse())
		g.Expect(plane.Remove(ctx)).To(Succeed(), "a second Remove must not be an error")
		g.Expect(plane.Down(ctx)).To(Succeed())
		g.Expect(exists(dir)).To(BeFalse())
	})
}

func TestHungComponentsAreReplaced(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	plane, _ := open(t, filepath.Join(t.TempDir(), "stuck"), controlplane.Options{})
	g := NewWithT(t)
	g.Expect(plane.Up(ctx)).To(Succeed())
	keep(ctx, g, plane)
	for _, hung := range [][]string{{"etcd"}, {"kwok"}, controlplane.Components} {
		before := pids(ctx, g, plane)
		for _, each := range hung {
			g.Expect(stop(before[each])).To(Succeed())
		}
		// A signal takes a moment to arrive.
		g.Eventually(ctx, func(g Gomega) {
			status, err := plane.Status(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			for _, component := range status.Components {
				if slices.Contains(hung, component.Name) {
					g.Expect(component.Hung).To(BeTrue(), component.Name)
				}
			}
		}).WithTimeout(limit).Should(Succeed())
		g.Expect(plane.Up(ctx)).To(Succeed())
		for component, pid := range pids(ctx, g, plane) {
			if pid == before[component] {
				g.Expect(hung).NotTo(ContainElement(component), "a component that hangs must be replaced")
			} else {
				g.Expect(hung).To(ContainElement(component), "a component that answers must be left alone")
			}
		}
		g.Expect(kept(ctx, g, plane)).To(BeTrue())
	}
}

func TestUpAfterAKillAtAnyMoment(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*limit)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "cut")
	plane, _ := open(t, dir, controlplane.Options{})
	there := func(name string) func() bool { return func() bool { return exists(dir, name) } }
	gone := func(name string) func() bool { return func() bool { return !exists(dir, name) } }
	// newer's condition is that a file of the next generation exists, and older's that the generation in use now is gone.
	newer := func(prefix, file string) func() bool {
		current := generation(dir, prefix)
		return func() bool { return exists(dir, prefix+strconv.Itoa(current+1), file) }
	}
	older := func(prefix string) func() bool { return gone(prefix + strconv.Itoa(generation(dir, prefix))) }
	after := func(delay time.Duration) func() bool {
		began := time.Now()
		return func() bool { return time.Since(began) > delay }
	}
	absent := func(g Gomega) { g.Expect(plane.Remove(ctx)).To(Succeed()) }
	running := func(g Gomega) { g.Expect(plane.Up(ctx)).To(Succeed()); keep(ctx, g, plane) }
	stopped := func(g Gomega) { running(g); g.Expect(plane.Down(ctx)).To(Succeed()) }
	cases := []struct {
		name, verb string
		before     func(Gomega)
		moment     func() func() bool
		// keeps means that the data must survive.
		keeps bool
	}{
		{"Up, when keys are made", "up", absent, func() func() bool { return there("pki-1/ca.crt") }, false},
		{"Up, when the control plane is recorded", "up", absent, func() func() bool { return there("controlplane.json") }, false},
		{"Up, when etcd is started", "up", absent, func() func() bool { return there("run/etcd") }, false},
		{"Up, when kwok is started", "up", absent, func() func() bool { return there("run/kwok") }, false},
		{"Up, when the snapshot is made", "up", absent, func() func() bool { return there("fresh.db") }, false},
		{"Up again, immediately", "up", running, func() func() bool { return after(0) }, true},
		{"Up again, a moment later", "up", stopped, func() func() bool { return after(300 * time.Millisecond) }, true},
		{"Down, a moment later", "down", running, func() func() bool { return after(20 * time.Millisecond) }, true},
		{"RenewCertificates, when keys are made", "renew", running, func() func() bool { return newer("pki-", "ca.crt") }, true},
		{"RenewCertificates, when the new keys are in use", "renew", running, func() func() bool { return older("pki-") }, true},
		{"Reset, when new data is made", "reset", running, func() func() bool { return newer("etcd-", "member") }, true},
		{"Reset, when the new data is in use", "reset", running, func() func() bool { return older("etcd-") }, false},
		{"Remove, when the record is gone", "remove", running, func() func() bool { return gone("controlplane.json") }, false},
		{"Remove, when the folder is being emptied", "remove", running, func() func() bool { return gone("kubeconfig") }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			c.before(g)
			killAt(ctx, t, c.verb, dir, c.moment())
			g.Expect(plane.Up(ctx)).To(Succeed(), "the next Up must repair it")
			status, err := plane.Status(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status.Running()).To(BeTrue())
			// A component that has just been started may still be the shell that starts it.
			g.Eventually(func(g Gomega) {
				g.Expect(below(g, dir)).To(ConsistOf(controlplane.Components), "nothing else may still be running")
			}).
				WithTimeout(limit).Should(Succeed())
			if c.keeps {
				g.Expect(kept(ctx, g, plane)).To(BeTrue())
			}
		})
	}
}

// generation returns the highest number among the folders with a prefix.
func generation(dir, prefix string) int {
	highest := 0
	for number := range 1000 {
		if exists(dir, prefix+strconv.Itoa(number)) {
			highest = number
		}
	}
	return highest
}

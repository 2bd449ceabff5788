package doks_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/operator-workshop/doks"
)

// pretended implements doks.Planes without control planes. A test can inspect it, and make it fail.
type pretended struct {
	mu     sync.Mutex
	made   map[string]int
	nodes  map[string][]doks.PlaneNode
	broken error
	// hold keeps Make waiting until hold is closed or the context ends. If it is nil, Make doesn't wait.
	hold chan struct{}
}

func newPretended() *pretended {
	return &pretended{made: map[string]int{}, nodes: map[string][]doks.PlaneNode{}}
}

func (p *pretended) Make(ctx context.Context, id string) (string, error) {
	if p.hold != nil {
		select {
		case <-p.hold:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[id]++
	return "https://127.0.0.1:6443", p.broken
}

func (p *pretended) SetNodes(_ context.Context, id string, nodes []doks.PlaneNode) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[id] = nodes
	return p.broken
}

func (p *pretended) Access(_ context.Context, _ string, lifetime time.Duration) (doks.Access, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return doks.Access{Token: "from the plane", ExpiresAt: beginning.Add(lifetime)}, p.broken
}

func (p *pretended) Delete(_ context.Context, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken == nil {
		delete(p.made, id)
		delete(p.nodes, id)
	}
	return p.broken
}

func (p *pretended) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = err
}

func (p *pretended) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.made)
}

func (p *pretended) of(id string) []doks.PlaneNode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes[id]
}

func newLabWithPlanes(t *testing.T, planes *pretended, change ...func(*doks.Options)) *lab {
	t.Helper()
	return newLab(t, append(change, func(o *doks.Options) { o.Planes = planes })...)
}

// soon keeps moving the clock, which drives the worker, until check succeeds.
func (l *lab) soon(check func(Gomega)) {
	l.Helper()
	l.Eventually(l.ctx, func(g Gomega) {
		l.clock.Step(time.Second)
		check(g)
	}).WithTimeout(testLimit).WithPolling(time.Millisecond).Should(Succeed())
}

func TestAClusterRunsWhenItsPlaneDoes(t *testing.T) {
	planes := newPretended()
	planes.hold = make(chan struct{})
	l := newLabWithPlanes(t, planes)
	made := l.create("demo", 2)
	l.clock.Step(time.Hour)
	l.Expect(string(l.get(made.ID).Status.State)).To(Equal("provisioning"), "a cluster must not run before its plane does, even if its provisioning time has passed")
	l.Expect(l.do("GET", clustersURL+"/"+made.ID+"/kubeconfig", "").status).To(Equal(http.StatusNotFound))
	close(planes.hold)
	l.soon(func(g Gomega) { g.Expect(states(l.get(made.ID))).To(Equal([]string{"running", "running"})) })
	running := l.get(made.ID)
	l.Expect(running.Endpoint).To(Equal("https://127.0.0.1:6443"))
	l.Expect(l.do("GET", clustersURL+"/"+made.ID+"/kubeconfig", "").text).To(ContainSubstring("from the plane"))

	nodes := planes.of(made.ID)
	l.Expect(nodes).To(HaveLen(2))
	l.Expect(nodes).To(ContainElement(HaveField("Name", running.NodePools[0].Nodes[0].Name)))
	l.Expect(nodes[0].Labels).To(And(
		HaveKeyWithValue("doks.digitalocean.com/node-pool", "workers"),
		HaveKeyWithValue("node.kubernetes.io/instance-type", "s-2vcpu-4gb"),
		HaveKeyWithValue("topology.kubernetes.io/region", "nyc1")))
}

func TestAPlaneHasTheNodesOfItsPools(t *testing.T) {
	planes := newPretended()
	l := newLabWithPlanes(t, planes)
	made := l.create("demo", 3)
	l.soon(func(g Gomega) { g.Expect(states(l.get(made.ID))).To(HaveEach("running")) })
	l.Expect(l.do("PUT", l.poolPath(), `{"name":"workers","count":2,"labels":{"team":"a"},"taints":[{"key":"k","effect":"NoSchedule"}]}`).status).To(Equal(http.StatusAccepted))
	l.Eventually(func() []doks.PlaneNode { return planes.of(made.ID) }).WithTimeout(testLimit).Should(ContainElement(HaveField("Draining", true)))
	l.soon(func(g Gomega) { g.Expect(planes.of(made.ID)).To(HaveLen(2)) })
	l.soon(func(g Gomega) { g.Expect(states(l.get(made.ID))).To(Equal([]string{"running", "running"})) })
	l.Expect(planes.of(made.ID)).To(HaveEach(And(
		HaveField("Labels", HaveKeyWithValue("team", "a")),
		HaveField("Taints", Equal([]doks.Taint{{Key: "k", Effect: "NoSchedule"}})),
		HaveField("Draining", false))))
}

func TestNodesComeAndGoWithThoseOfThePlane(t *testing.T) {
	planes := newPretended()
	l := newLabWithPlanes(t, planes)
	made := l.create("demo", 2)
	l.soon(func(g Gomega) { g.Expect(string(l.get(made.ID).Status.State)).To(Equal("running")) })
	l.soon(func(g Gomega) { g.Expect(states(l.get(made.ID))).To(HaveEach("running")) })
	planes.fail(errors.New("not now"))
	l.Expect(l.do("PUT", l.poolPath(), `{"name":"workers","count":1}`).status).To(Equal(http.StatusAccepted))
	l.Expect(l.do("POST", clustersURL+"/"+made.ID+"/node_pools", pool(`name="more"`)).status).To(Equal(http.StatusCreated))
	l.clock.Step(time.Hour)
	l.clock.Step(time.Hour)
	l.Expect(states(l.get(made.ID))).To(Equal([]string{"running", "deleting", "provisioning"}), "nodes must keep their states until the plane has changed, even if their times have passed")
	planes.fail(nil)
	l.soon(func(g Gomega) { g.Expect(states(l.get(made.ID))).To(Equal([]string{"running", "running"})) })
}

func TestARestartWhileProvisioningEndsWithAnAddress(t *testing.T) {
	planes := newPretended()
	path := filepath.Join(t.TempDir(), "state.json")
	keep := func(o *doks.Options) { o.StateFile = path }
	first := newLabWithPlanes(t, planes, keep)
	made := first.create("demo", 1)
	first.Eventually(planes.count).WithTimeout(testLimit).Should(Equal(1))
	first.cloud.Close()

	planes.hold = make(chan struct{})
	later := func(o *doks.Options) { o.Clock = clocktesting.NewFakeClock(beginning.Add(time.Hour)) }
	second := newLabWithPlanes(t, planes, keep, later)
	second.Expect(string(second.get(made.ID).Status.State)).To(Equal("provisioning"), "a cluster must not run before its plane is found again")
	close(planes.hold)
	second.Eventually(func() string { return second.get(made.ID).Endpoint }).WithTimeout(testLimit).Should(Equal("https://127.0.0.1:6443"))
}

func TestAPlaneIsDeletedWithItsCluster(t *testing.T) {
	planes := newPretended()
	l := newLabWithPlanes(t, planes)
	made := l.create("demo", 1)
	l.soon(func(g Gomega) { g.Expect(string(l.get(made.ID).Status.State)).To(Equal("running")) })
	planes.fail(errors.New("not now"))
	l.do("DELETE", clustersURL+"/"+made.ID, "")
	l.soon(func(g Gomega) { g.Expect(l.cloud.Clusters()).To(BeEmpty()) })
	l.Expect(planes.count()).To(Equal(1))
	planes.fail(nil)
	l.soon(func(g Gomega) { g.Expect(planes.count()).To(BeZero(), "the deletion must be retried") })
}

func TestAClusterWhosePlaneCannotBeMadeIsInError(t *testing.T) {
	planes := newPretended()
	planes.fail(errors.New("no room"))
	l := newLabWithPlanes(t, planes)
	made := l.create("demo", 1)
	l.soon(func(g Gomega) { g.Expect(string(l.get(made.ID).Status.State)).To(Equal("error")) })
	l.Expect(l.get(made.ID).Status.Message).To(Equal("the control plane could not be made"))
	l.Expect(l.cloud.SetState(made.ID, doks.StateRunning, "")).To(MatchError(ContainSubstring("its control plane is not ready")))
}

func TestAClusterThatShouldFailGetsNoPlane(t *testing.T) {
	planes := newPretended()
	l := newLabWithPlanes(t, planes, func(o *doks.Options) { o.EndState = doks.StateError })
	made := l.create("demo", 1)
	l.soon(func(g Gomega) { g.Expect(string(l.get(made.ID).Status.State)).To(Equal("error")) })
	l.Expect(planes.count()).To(BeZero())
}

func TestAPlaneThatDoesNotAnswerMeansA503(t *testing.T) {
	planes := newPretended()
	l := newLabWithPlanes(t, planes)
	made := l.create("demo", 1)
	l.soon(func(g Gomega) { g.Expect(string(l.get(made.ID).Status.State)).To(Equal("running")) })
	planes.fail(errors.New("no answer"))
	got := l.do("GET", clustersURL+"/"+made.ID+"/credentials", "")
	l.Expect(got.status).To(Equal(http.StatusServiceUnavailable))
	l.Expect(got.body).To(HaveKeyWithValue("message", "the cluster does not answer"))
}

func TestARestartFindsThePlanes(t *testing.T) {
	planes := newPretended()
	path := filepath.Join(t.TempDir(), "state.json")
	keep := func(o *doks.Options) { o.StateFile = path }
	first := newLabWithPlanes(t, planes, keep)
	made := first.create("demo", 2)
	gone := first.create("gone", 1)
	first.soon(func(g Gomega) { g.Expect(states(first.get(made.ID))).To(HaveEach("running")) })
	first.soon(func(g Gomega) { g.Expect(string(first.get(gone.ID).Status.State)).To(Equal("running")) })
	planes.fail(errors.New("not now"))
	first.Expect(first.cloud.Remove(gone.ID)).To(Succeed())
	first.cloud.Close()
	planes.fail(nil)
	planes.nodes = map[string][]doks.PlaneNode{}

	second := newLabWithPlanes(t, planes, keep, func(o *doks.Options) { o.Clock = clocktesting.NewFakeClock(first.clock.Now()) })
	second.Expect(states(second.get(made.ID))).To(HaveEach("running"))
	second.Eventually(func() []doks.PlaneNode { return planes.of(made.ID) }).WithTimeout(testLimit).Should(HaveLen(2))
	second.Eventually(planes.count).WithTimeout(testLimit).Should(Equal(1), "the plane of the removed cluster must be deleted after the restart")
}

func TestCloseEndsWorkInProgress(t *testing.T) {
	planes := newPretended()
	planes.hold = make(chan struct{})
	l := newLabWithPlanes(t, planes)
	l.create("demo", 1)
	closed := make(chan struct{})
	go func() {
		l.cloud.Close()
		close(closed)
	}()
	l.Eventually(closed).WithTimeout(testLimit).Should(BeClosed())
	l.Expect(l.cloud.Clusters()[0].Status.State).To(Equal(doks.StateProvisioning), "stopping the emulator must not look like a failure")
}

package planes_test

import (
	"bytes"
	"context"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/digitalocean/godo"
	. "github.com/onsi/gomega"
	"github.com/shirou/gopsutil/v4/process"
	"golang.org/x/oauth2"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/doks"
	"example.com/operator-workshop/doks/planes"
)

// limit bounds one test. A control plane starts within seconds, but takes longer under load.
const limit = 4 * time.Minute

// output is a buffer to which several goroutines can write at the same time.
type output struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (o *output) Write(content []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.content.Write(content)
}

// lab is an emulator with real control planes behind its clusters.
type lab struct {
	Gomega
	ctx     context.Context
	dir     string
	kwok    *planes.Kwok
	cloud   *doks.Emulator
	service godo.KubernetesService
}

// newLab opens a folder of control planes, and starts an emulator that uses them, with a state file.
func newLab(t *testing.T, dir string) *lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	l := &lab{Gomega: NewWithT(t), ctx: ctx, dir: dir}
	log := &output{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.content.String())
		}
	})
	var err error
	l.kwok, err = planes.Open(filepath.Join(dir, "my planes"), "", log)
	l.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = l.kwok.Close() }) // for a test that fails before it closes it
	options := doks.Options{Tokens: []string{"token"}, Planes: l.kwok, StateFile: filepath.Join(dir, "state.json")}
	l.cloud, err = doks.New(options)
	l.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(l.cloud.Close)
	server := httptest.NewServer(l.cloud)
	t.Cleanup(server.Close)
	source := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "token"})
	client, err := godo.New(oauth2.NewClient(ctx, source), godo.SetBaseURL(server.URL))
	l.Expect(err).NotTo(HaveOccurred())
	l.service = client.Kubernetes
	return l
}

// removeAll removes the control planes that a test has left in its folder.
func removeAll(t *testing.T, dir string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	kwok, err := planes.Open(filepath.Join(dir, "my planes"), "", &output{})
	if err == nil {
		err = kwok.DeleteAll(ctx)
	}
	if err != nil {
		t.Errorf("remove the control planes: %v", err)
	}
}

// running returns the names of the running programs whose command lines contain the folder's path.
func running(ctx context.Context, g Gomega, dir string) []string {
	all, err := process.ProcessesWithContext(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	names := []string{}
	for _, each := range all {
		args, err := each.CmdlineSliceWithContext(ctx)
		if err == nil && len(args) > 0 && strings.Contains(strings.Join(args, " "), dir) {
			names = append(names, filepath.Base(args[0]))
		}
	}
	slices.Sort(names)
	return names
}

// waitRunning waits until a cluster and its nodes are running.
func (l *lab) waitRunning(id string, nodes int) *godo.KubernetesCluster {
	var found *godo.KubernetesCluster
	l.Eventually(l.ctx, func(g Gomega) {
		var err error
		found, _, err = l.service.Get(l.ctx, id)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Status.State).To(Equal(godo.KubernetesClusterStatusRunning), found.Status.Message)
		count := 0
		for _, pool := range found.NodePools {
			for _, node := range pool.Nodes {
				g.Expect(node.Status.State).To(Equal("running"))
				count++
			}
		}
		g.Expect(count).To(Equal(nodes))
	}).WithTimeout(limit).WithPolling(100 * time.Millisecond).Should(Succeed())
	return found
}

// connect returns a client with the kubeconfig that the API hands out.
func (l *lab) connect(id string) kubernetes.Interface {
	content, _, err := l.service.GetKubeConfigWithExpiry(l.ctx, id, 3600)
	l.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(content.KubeconfigYAML)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(config.Host).To(HavePrefix("https://127.0.0.1:"))
	client, err := kubernetes.NewForConfig(config)
	l.Expect(err).NotTo(HaveOccurred())
	return client
}

// nodesOf returns the nodes of one pool as the control plane has them.
func (l *lab) nodesOf(client kubernetes.Interface, pool string) []corev1.Node {
	found, err := client.CoreV1().Nodes().List(l.ctx, metav1.ListOptions{LabelSelector: "doks.digitalocean.com/node-pool=" + pool})
	l.Expect(err).NotTo(HaveOccurred())
	return found.Items
}

func TestTheLifeOfARealControlPlane(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { removeAll(t, dir) })
	l := newLab(t, dir)
	made, _, err := l.service.Create(l.ctx, &godo.KubernetesClusterCreateRequest{
		Name: "demo", RegionSlug: "nyc1", VersionSlug: "latest",
		NodePools: []*godo.KubernetesNodePoolCreateRequest{
			{Name: "small", Size: "s-2vcpu-4gb", Count: 2, Labels: map[string]string{"team": "a"}},
			{Name: "gpu", Size: "g-4vcpu-16gb", Count: 1, Taints: []godo.Taint{{Key: "gpu", Value: "yes", Effect: "NoSchedule"}}},
		},
	})
	l.Expect(err).NotTo(HaveOccurred())
	found := l.waitRunning(made.ID, 3)
	client := l.connect(made.ID)

	t.Run("it has the pools' nodes, which are ready and have the right labels, taints and capacity", func(t *testing.T) {
		g := NewWithT(t)
		all, err := client.CoreV1().Nodes().List(l.ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(all.Items).To(HaveLen(3))
		for _, node := range all.Items {
			g.Expect(node.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue))))
		}
		small, gpu := l.nodesOf(client, "small"), l.nodesOf(client, "gpu")
		g.Expect(small).To(HaveLen(2))
		g.Expect(small[0].Labels).To(HaveKeyWithValue("team", "a"))
		g.Expect(small[0].Status.Capacity.Memory().String()).To(Equal("4Gi"))
		g.Expect(gpu).To(HaveLen(1))
		g.Expect(gpu[0].Name).To(Equal(found.NodePools[1].Nodes[0].Name))
		// The node lifecycle controller removes the not-ready taint a few moments after the node becomes ready.
		g.Eventually(func() []corev1.Taint { return l.nodesOf(client, "gpu")[0].Spec.Taints }).WithTimeout(limit).WithPolling(100 * time.Millisecond).Should(
			ConsistOf(corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}))
	})

	t.Run("its credentials are an administrator's and expire", func(t *testing.T) {
		g := NewWithT(t)
		granted, _, err := l.service.GetCredentials(l.ctx, made.ID, &godo.KubernetesClusterCredentialsGetRequest{ExpirySeconds: new(1200)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(time.Until(granted.ExpiresAt)).To(BeNumerically("~", 20*time.Minute, time.Minute))
		review, err := client.AuthenticationV1().TokenReviews().Create(l.ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: granted.Token}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(review.Status.Authenticated).To(BeTrue(), review.Status.Error)
		_, err = client.CoreV1().Namespaces().Create(l.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	})

	t.Run("its nodes follow their pool", func(t *testing.T) {
		g := NewWithT(t)
		_, _, err := l.service.UpdateNodePool(l.ctx, made.ID, found.NodePools[0].ID, &godo.KubernetesNodePoolUpdateRequest{Name: "small", Count: new(1), Labels: map[string]string{"team": "b"}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(func() []corev1.Node { return l.nodesOf(client, "small") }).WithTimeout(limit).WithPolling(100 * time.Millisecond).Should(
			HaveExactElements(HaveField("Labels", HaveKeyWithValue("team", "b"))))
	})

	t.Run("another emulator cannot use it", func(t *testing.T) {
		g := NewWithT(t)
		_, err := planes.Open(filepath.Join(dir, "my planes"), "", &output{})
		g.Expect(err).To(MatchError(HavePrefix("another emulator uses the control planes in ")))
	})

	l.cloud.Close()
	l.Expect(l.kwok.Close()).To(Succeed())
	l.Expect(running(l.ctx, l, dir)).To(Equal([]string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}), "the control plane must keep running")

	t.Run("it is found again after a restart, and deleted with its cluster", func(t *testing.T) {
		again := newLab(t, dir)
		again.waitRunning(made.ID, 2)
		client := again.connect(made.ID)
		_, err := client.CoreV1().Namespaces().Get(again.ctx, "kept", metav1.GetOptions{})
		again.Expect(err).NotTo(HaveOccurred())
		_, err = again.service.Delete(again.ctx, made.ID)
		again.Expect(err).NotTo(HaveOccurred())
		again.Eventually(again.ctx, func(g Gomega) {
			g.Expect(running(again.ctx, g, dir)).To(BeEmpty())
		}).WithTimeout(limit).WithPolling(100 * time.Millisecond).Should(Succeed())
		again.cloud.Close()
		again.Expect(again.kwok.Close()).To(Succeed())
	})
}

func TestOpenSaysHowToGetMissingTools(t *testing.T) {
	g := NewWithT(t)
	_, err := planes.Open(t.TempDir(), t.TempDir(), &output{})
	g.Expect(err).To(MatchError(ContainSubstring("etcd is missing: run `make tools`")))
}

package doks_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/digitalocean/godo"
	. "github.com/onsi/gomega"
	"golang.org/x/oauth2"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/operator-workshop/doks"
)

const (
	fullToken   = "full-token-8c1f"
	readToken   = "read-token-77aa"
	narrowToken = "narrow-token-1d0e"
	testLimit   = 30 * time.Second
	clustersURL = "/v2/kubernetes/clusters"
)

// beginning is the time at which every test's clock starts.
var beginning = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// lab is an emulator behind a server, with a clock that moves only when a test moves it.
type lab struct {
	*testing.T
	Gomega
	cloud  *doks.Emulator
	clock  *clocktesting.FakeClock
	server *httptest.Server
	ctx    context.Context
}

// newLab starts an emulator with the command's default options, but without rate limits.
func newLab(t *testing.T, change ...func(*doks.Options)) *lab {
	t.Helper()
	clock := clocktesting.NewFakeClock(beginning)
	options := doks.Defaults()
	options.Tokens, options.ReadOnlyTokens, options.ClusterTokens = []string{fullToken}, []string{readToken}, []string{narrowToken}
	options.RequestsPerMinute, options.RequestsPerHour = 0, 0
	options.Clock = clock
	for _, each := range change {
		each(&options)
	}
	cloud, err := doks.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)
	server := httptest.NewServer(observe(t, cloud))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	return &lab{T: t, Gomega: NewWithT(t), cloud: cloud, clock: clock, server: server, ctx: ctx}
}

// answer is a reply as it was sent over the network.
type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// send makes a request with a token, or without one if it is "".
func (l *lab) send(token, method, path, body string) (answer, error) {
	l.Helper()
	request, err := http.NewRequestWithContext(l.ctx, method, l.server.URL+path, strings.NewReader(body))
	l.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := l.server.Client().Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	got := answer{status: response.StatusCode, header: response.Header, text: string(content)}
	if strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
		_ = json.Unmarshal(content, &got.body)
	}
	return got, err
}

// do makes a request with the token that may do everything, and expects a reply.
func (l *lab) do(method, path, body string) answer {
	l.Helper()
	got, err := l.send(fullToken, method, path, body)
	l.Expect(err).NotTo(HaveOccurred())
	return got
}

// client returns a godo client, which doesn't retry requests unless options say otherwise.
func (l *lab) client(options ...godo.ClientOpt) *godo.Client {
	l.Helper()
	source := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: fullToken})
	client, err := godo.New(oauth2.NewClient(l.ctx, source), append(options, godo.SetBaseURL(l.server.URL))...)
	l.Expect(err).NotTo(HaveOccurred())
	return client
}

// retrying makes godo retry up to the given number of times, almost immediately.
func retrying(times int) godo.ClientOpt {
	return godo.WithRetryAndBackoffs(godo.RetryConfig{RetryMax: times, RetryWaitMin: new(0.001), RetryWaitMax: new(0.01)})
}

// request returns a minimal create request, with one pool of the given number of nodes.
func request(name string, nodes int) *godo.KubernetesClusterCreateRequest {
	return &godo.KubernetesClusterCreateRequest{
		Name: name, RegionSlug: "nyc1", VersionSlug: "1.36",
		NodePools: []*godo.KubernetesNodePoolCreateRequest{{Name: "workers", Size: "s-2vcpu-4gb", Count: nodes}},
	}
}

func (l *lab) create(name string, nodes int) *godo.KubernetesCluster {
	l.Helper()
	made, _, err := l.client().Kubernetes.Create(l.ctx, request(name, nodes))
	l.Expect(err).NotTo(HaveOccurred())
	return made
}

// createRunning makes a cluster, and moves the clock far enough for the cluster and its nodes to be running.
func (l *lab) createRunning(name string, nodes int) *godo.KubernetesCluster {
	l.Helper()
	made := l.create(name, nodes)
	l.clock.Step(time.Minute)
	running := l.get(made.ID)
	l.Expect(running.Status.State).To(Equal(godo.KubernetesClusterStatusRunning))
	return running
}

func (l *lab) get(id string) *godo.KubernetesCluster {
	l.Helper()
	found, _, err := l.client().Kubernetes.Get(l.ctx, id)
	l.Expect(err).NotTo(HaveOccurred())
	return found
}

// states returns the states of all nodes of a cluster, pool by pool.
func states(c *godo.KubernetesCluster) []string {
	found := []string{}
	for _, pool := range c.NodePools {
		for _, node := range pool.Nodes {
			found = append(found, node.Status.State)
		}
	}
	return found
}

// statusOf returns the HTTP status in godo's error, or 0 if it has none.
func statusOf(err error) int {
	if failed, ok := errors.AsType[*godo.ErrorResponse](err); ok {
		return failed.Response.StatusCode
	}
	return 0
}

// posts counts the journal's requests to create a cluster.
func (l *lab) posts() int {
	count := 0
	for _, entry := range l.cloud.Journal() {
		if entry.Operation == "create cluster" {
			count++
		}
	}
	return count
}

func (l *lab) fault(text string) {
	l.Helper()
	fault, err := doks.ParseFault(text)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(l.cloud.AddFault(fault)).To(Succeed())
}

package doks_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/digitalocean/godo"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/doks"
)

// creation is the outcome of one call to godo's Create. godo may have sent the request several times.
type creation struct {
	made     *godo.KubernetesCluster
	response *godo.Response
	err      error
	posts    int
	clusters int
}

// TestWhatGodoMakesOfFaults shows what an operator sees when a create request goes wrong.
func TestWhatGodoMakesOfFaults(t *testing.T) {
	const create = "POST " + clustersURL
	cases := map[string]struct {
		fault   string
		options []godo.ClientOpt
		check   func(Gomega, creation)
	}{
		"a connection dropped before the effect gives a plain error and no response": {
			fault: create + " drop",
			check: func(g Gomega, c creation) {
				g.Expect(c.err).To(HaveOccurred())
				g.Expect(statusOf(c.err)).To(BeZero())
				g.Expect(c.response).To(BeNil())
				g.Expect(c.posts).To(Equal(1))
				g.Expect(c.clusters).To(BeZero())
			},
		},
		"a connection dropped after the effect looks the same, but the cluster exists": {
			fault: create + " drop after",
			check: func(g Gomega, c creation) {
				g.Expect(c.err).To(HaveOccurred())
				g.Expect(statusOf(c.err)).To(BeZero())
				g.Expect(c.response).To(BeNil())
				g.Expect(c.posts).To(Equal(1))
				g.Expect(c.clusters).To(Equal(1))
			},
		},
		"a retry after a drop before the effect succeeds": {
			fault: create + " drop", options: []godo.ClientOpt{retrying(2)},
			check: func(g Gomega, c creation) {
				g.Expect(c.err).NotTo(HaveOccurred())
				g.Expect(c.posts).To(Equal(2))
			},
		},
		"two retries are too few after three dropped requests": {
			fault: create + " drop count=3", options: []godo.ClientOpt{retrying(2)},
			check: func(g Gomega, c creation) {
				g.Expect(c.err).To(HaveOccurred())
				g.Expect(c.posts).To(Equal(3))
			},
		},
		"if only the reply was dropped, the retry is told that the name is taken": {
			fault: create + " drop after", options: []godo.ClientOpt{retrying(2)},
			check: func(g Gomega, c creation) {
				g.Expect(statusOf(c.err)).To(Equal(http.StatusUnprocessableEntity))
				g.Expect(c.err).To(MatchError(ContainSubstring("a cluster with this name already exists")))
				g.Expect(c.posts).To(Equal(2))
				g.Expect(c.clusters).To(Equal(1))
			},
		},
		"a request whose reply is cut off is not retried, and the new cluster's ID is lost": {
			fault: create + " cut", options: []godo.ClientOpt{retrying(2)},
			check: func(g Gomega, c creation) {
				g.Expect(c.err).To(MatchError("unexpected EOF"))
				g.Expect(c.made).To(BeNil())
				g.Expect(c.posts).To(Equal(1))
				g.Expect(c.clusters).To(Equal(1))
			},
		},
		"a 500 is retried": {
			fault: create + " 500", options: []godo.ClientOpt{retrying(2)}, check: repeated,
		},
		"a 502 is retried": {
			fault: create + " 502", options: []godo.ClientOpt{retrying(2)}, check: repeated,
		},
		"a 503 is retried": {
			fault: create + " 503", options: []godo.ClientOpt{retrying(2)}, check: repeated,
		},
		"a 500 after the effect is retried as well": {
			fault: create + " 500 after", options: []godo.ClientOpt{retrying(2)},
			check: func(g Gomega, c creation) {
				g.Expect(statusOf(c.err)).To(Equal(http.StatusUnprocessableEntity))
				g.Expect(c.posts).To(Equal(2))
				g.Expect(c.clusters).To(Equal(1))
			},
		},
		"a page of HTML becomes the error's message": {
			fault: create + " 502",
			check: func(g Gomega, c creation) {
				g.Expect(statusOf(c.err)).To(Equal(http.StatusBadGateway))
				g.Expect(c.err).To(MatchError(ContainSubstring("<html>")))
			},
		},
		"a 429 without Retry-After is retried": {
			fault: create + " 429", options: []godo.ClientOpt{retrying(2)}, check: repeated,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			client := l.client(c.options...)
			l.fault(c.fault)
			var got creation
			got.made, got.response, got.err = client.Kubernetes.Create(l.ctx, request("demo", 1))
			got.posts, got.clusters = l.posts(), len(l.cloud.Clusters())
			c.check(l, got)
		})
	}
}

// repeated checks that a create request that failed without effect was sent again, once, and that it then succeeded.
func repeated(g Gomega, c creation) {
	g.Expect(c.err).NotTo(HaveOccurred())
	g.Expect(c.posts).To(Equal(2))
	g.Expect(c.clusters).To(Equal(1))
}

// TestNetHTTPRepeatsReadsByItself shows a retry by net/http, not by godo. If a reused connection breaks, net/http
// repeats a request that changes nothing.
func TestNetHTTPRepeatsReadsByItself(t *testing.T) {
	l := newLab(t)
	service := l.client().Kubernetes
	made := l.create("demo", 1)
	_, _, err := service.List(l.ctx, nil)
	l.Expect(err).NotTo(HaveOccurred())
	l.cloud.ClearJournal()

	l.fault("GET * drop")
	_, _, err = service.List(l.ctx, nil)
	l.Expect(err).NotTo(HaveOccurred(), "the caller must not notice the drop")
	l.Expect(l.cloud.Journal()).To(HaveLen(2))
	l.fault("DELETE * drop")
	_, err = service.Delete(l.ctx, made.ID)
	l.Expect(err).To(HaveOccurred(), "a write must not be repeated")
	l.Expect(l.cloud.Journal()).To(HaveLen(3))
}

func TestGodoObeysRetryAfterUntilTheContextEnds(t *testing.T) {
	l := newLab(t)
	client := l.client(retrying(2)) // without Retry-After, it would wait 10 ms at most
	l.fault("GET * 429 retry_after=1h")
	ctx, cancel := context.WithTimeout(l.ctx, 500*time.Millisecond)
	defer cancel()
	_, _, err := client.Kubernetes.List(ctx, nil)
	l.Expect(errors.Is(err, context.DeadlineExceeded)).To(BeTrue(), "got %v", err)
	l.Expect(l.cloud.Journal()).To(HaveLen(1))
}

func TestGodoFromATokenRetriesAndHasNoTimeout(t *testing.T) {
	g := NewWithT(t)
	client := godo.NewFromToken(fullToken)
	g.Expect(client.RetryConfig.RetryMax).To(Equal(4))
	g.Expect(client.HTTPClient.Timeout).To(BeZero())
}

func TestGodoWithRetriesNeedsAnOAuthTransport(t *testing.T) {
	NewWithT(t).Expect(func() { _, _ = godo.New(&http.Client{}, retrying(1)) }).To(Panic())
}

func TestGodoGetsNothingForAnEmptyID(t *testing.T) {
	l := newLab(t)
	l.create("demo", 1)
	found, _, err := l.client().Kubernetes.Get(l.ctx, "")
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(found).To(BeNil())
	_, err = l.client().Kubernetes.Delete(l.ctx, "")
	l.Expect(statusOf(err)).To(Equal(http.StatusNotFound), "the API must answer 404, which looks as if the cluster were gone")
	l.Expect(l.cloud.Clusters()).To(HaveLen(1))
}

func TestGodoDropsAPathInItsBaseURL(t *testing.T) {
	l := newLab(t)
	client := l.client()
	l.Expect(godo.SetBaseURL(l.server.URL + "/prefix/")(client)).To(Succeed())
	_, _, err := client.Kubernetes.List(l.ctx, nil)
	l.Expect(err).NotTo(HaveOccurred(), "godo's paths are absolute: a path in the base URL is dropped")
}

func TestGodoCannotReadTheStateDeleting(t *testing.T) {
	l := newLab(t, func(o *doks.Options) { o.DeleteState = doks.StateDeleting })
	service := l.client().Kubernetes
	made, other := l.createRunning("demo", 1), l.createRunning("other", 1)
	_, err := service.Delete(l.ctx, made.ID)
	l.Expect(err).NotTo(HaveOccurred())

	_, response, err := service.Get(l.ctx, made.ID)
	l.Expect(err).To(MatchError(ContainSubstring(`unknown cluster state "deleting"`)))
	l.Expect(statusOf(err)).To(BeZero(), "the error must not be an ErrorResponse")
	l.Expect(response).To(BeNil())
	_, _, err = service.List(l.ctx, nil)
	l.Expect(err).To(MatchError(ContainSubstring(`unknown cluster state "deleting"`)), "one such cluster must make the whole list unreadable")

	l.clock.Step(time.Second)
	_, _, err = service.Get(l.ctx, made.ID)
	l.Expect(statusOf(err)).To(Equal(http.StatusNotFound))
	l.Expect(l.get(other.ID).Name).To(Equal("other"))
}

func TestGodosErrorsContainTheRequestID(t *testing.T) {
	l := newLab(t)
	_, _, err := l.client().Kubernetes.Get(l.ctx, "nothing")
	failed, ok := errors.AsType[*godo.ErrorResponse](err)
	l.Expect(ok).To(BeTrue())
	l.Expect(failed.Message).To(Equal("The resource you requested could not be found."))
	l.Expect(failed.RequestID).NotTo(BeEmpty())
	_, _, again := l.client().Kubernetes.Get(l.ctx, "nothing")
	l.Expect(again.Error()).NotTo(Equal(err.Error()), "the request ID must make each error's text unique")
}

func TestGodoReadsTheRateLimit(t *testing.T) {
	l := newLab(t, func(o *doks.Options) { o.RequestsPerHour = 5000 })
	client := l.client()
	_, response, err := client.Kubernetes.List(l.ctx, nil)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(response.Rate.Limit).To(Equal(5000))
	l.Expect(response.Rate.Remaining).To(Equal(4999))
	l.Expect(response.Reset.Time).To(BeTemporally("==", beginning.Add(time.Hour)))
}

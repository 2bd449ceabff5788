package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	"example.com/operator-workshop/doks"
)

func TestAPauseAppliesToOneToken(t *testing.T) {
	g := NewWithT(t)
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		writer.Header().Set("Retry-After", "3600")
		writer.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	options := cloudOptions{url: server.URL, qps: 1000, burst: 1000}
	open, disconnect := options.newConnector()
	defer disconnect()

	_, err := open("one").Identity(t.Context())
	g.Expect(cloud.Is(err, cloud.Busy)).To(BeTrue(), "expected Busy, found: %v", err)
	for range 2 { // the pause also holds for requests about other Klusters
		_, err = open("one").Find(t.Context(), cloud.Owner{UID: "another"})
		wait, unsent := errors.AsType[*rateLimitedError](err)
		g.Expect(unsent).To(BeTrue(), "the pause must apply to all requests with the token, see tokenState in cloud.go, found: %v", err)
		g.Expect(wait.left).To(BeNumerically("~", time.Hour, time.Minute))
	}
	g.Expect(requests.Load()).To(BeEquivalentTo(1))
	_, err = open("two").Identity(t.Context())
	g.Expect(cloud.Is(err, cloud.Busy)).To(BeTrue(), "another token must have a budget of its own, found: %v", err)
	g.Expect(requests.Load()).To(BeEquivalentTo(2))
}

func TestTheHourlyLimitCausesAPause(t *testing.T) {
	g := NewWithT(t)
	emulator, err := doks.New(doks.Options{Tokens: []string{"one"}, RequestsPerHour: 1})
	g.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(emulator)
	defer server.Close()
	options := cloudOptions{url: server.URL, qps: 1000, burst: 1000}
	open, disconnect := options.newConnector()
	defer disconnect()
	account := open("one")
	_, err = account.Find(t.Context(), cloud.Owner{UID: "any"})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = account.Find(t.Context(), cloud.Owner{UID: "any"})
	g.Expect(cloud.Is(err, cloud.Busy)).To(BeTrue(), "expected Busy, found: %v", err)
	_, err = account.Find(t.Context(), cloud.Owner{UID: "any"})
	wait, unsent := errors.AsType[*rateLimitedError](err)
	g.Expect(unsent).To(BeTrue(), "the header ratelimit-reset says when the hour is over, see RetryAfter in request.go, found: %v", err)
	g.Expect(wait.left).To(BeNumerically("~", time.Hour, time.Minute))
	g.Expect(emulator.Journal()).To(HaveLen(2))
}

// The limits are those for a token in the section "Rate Limit" of DigitalOcean's API reference.
func TestTheDefaultRateIsAllowed(t *testing.T) {
	g := NewWithT(t)
	options := defaultCloud()
	g.Expect(options.qps*time.Hour.Seconds() + float64(options.burst)).To(BeNumerically("<", 5000))
	g.Expect(options.qps*time.Minute.Seconds() + float64(options.burst)).To(BeNumerically("<", 250))
}

func TestEachTokenHasALimiter(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	options := cloudOptions{url: server.URL, qps: 0.001, burst: 1}
	open, disconnect := options.newConnector()
	defer disconnect()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, token := range []string{"one", "two"} {
		_, err := open(token).Identity(ctx)
		g.Expect(cloud.Is(err, cloud.Unavailable)).To(BeTrue(), "expected Unavailable, found: %v", err)
		_, err = open(token).Identity(ctx)
		g.Expect(err).To(MatchError(ContainSubstring("wait for --do-api-qps")), "the token's burst is used up, so the second request must wait")
	}
}

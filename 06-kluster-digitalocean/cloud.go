package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	"example.com/operator-workshop/06-kluster-digitalocean/internal/digitalocean"
)

// dialTimeout bounds how long the cloud may take to accept a connection.
const dialTimeout = 10 * time.Second

// cloudOptions configure the requests to the cloud.
type cloudOptions struct {
	url string
	// qps and burst limit the requests made with one token. DigitalOcean allows each token 250 requests a minute and
	// 5000 an hour ("Rate Limit" in its API reference); one request a second with bursts of 20 stays below both.
	qps   float64
	burst int
}

func defaultCloud() cloudOptions {
	return cloudOptions{url: digitalocean.DefaultURL, qps: 1, burst: 20}
}

func (o *cloudOptions) bind(set *flag.FlagSet) {
	set.StringVar(&o.url, "do-api-url", o.url, "`URL` of DigitalOcean's API, or of its emulator")
	set.Float64Var(&o.qps, "do-api-qps", o.qps, "requests a second to that API with one token, from all workers together")
	set.IntVar(&o.burst, "do-api-burst", o.burst, "requests that may exceed --do-api-qps for a moment")
}

func (o cloudOptions) validate() error {
	base, err := o.base()
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return fmt.Errorf("--do-api-url=%s: give a URL such as %s", o.url, digitalocean.DefaultURL)
	case base.Path != "/" || base.RawQuery != "" || base.User != nil:
		return fmt.Errorf("--do-api-url=%s: give scheme and host only", o.url)
	case base.Scheme == "http" && !isLoopback(base.Hostname()):
		return fmt.Errorf("--do-api-url=%s: the token would travel in the clear: give https, or a loopback address", o.url)
	case o.qps <= 0 || o.burst < 1:
		return fmt.Errorf("--do-api-qps=%v --do-api-burst=%d: give a positive rate, and a burst of at least 1", o.qps, o.burst)
	}
	return nil
}

func (o cloudOptions) base() (*url.URL, error) {
	base, err := url.Parse(o.url)
	if err == nil && base.Path == "" {
		base.Path = "/"
	}
	return base, err
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// newConnector returns two functions: open makes a client for a token's account, and disconnect closes idle
// connections. All clients share their connections, and all clients with the same token share its request budget. The
// options must be valid.
func (o cloudOptions) newConnector() (open func(token string) cloud.CloudProvider, disconnect func()) {
	base, _ := o.base()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	var mutex sync.Mutex
	tokens := map[[sha256.Size]byte]*tokenState{} // the keys are digests, so that the map keeps no token in memory
	open = func(token string) cloud.CloudProvider {
		mutex.Lock()
		defer mutex.Unlock()
		key := sha256.Sum256([]byte(token))
		if tokens[key] == nil {
			tokens[key] = &tokenState{limiter: rate.NewLimiter(rate.Limit(o.qps), o.burst)}
		}
		account := digitalocean.New(token, base, &limitedTransport{next: transport, token: tokens[key]})
		return &knownAccount{CloudProvider: account, token: tokens[key]}
	}
	return open, transport.CloseIdleConnections
}

// tokenState is the rate limit and the account of one token. The cloud counts requests separately for each token.
type tokenState struct {
	limiter *rate.Limiter

	mutex sync.Mutex
	// pausedUntil is the end of the pause that the cloud asked for with a 429.
	pausedUntil time.Time
	// identity is the account that the token belongs to, or "" if it is still unknown.
	identity string
}

func (t *tokenState) pause(length time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if until := time.Now().Add(length); until.After(t.pausedUntil) {
		t.pausedUntil = until
	}
}

// pauseLeft returns how long the pause still lasts. If there is none, the result is 0 or negative.
func (t *tokenState) pauseLeft() time.Duration {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return time.Until(t.pausedUntil)
}

// wait blocks until the rate limit lets the caller send a request with the token. During a pause, it returns an error
// instead, so that the worker can reconcile Klusters with other tokens. It also returns an error if ctx is done first,
// or if its deadline is too early.
//
// Without a pause, blocking is better than requeueing. It is short: a worker sends one request at a time, so at most
// --workers requests wait at once, by default for at most two seconds. And a reconcile that had to begin again for each
// request might never reach its last one, because other Klusters would use up the budget for their first ones.
func (t *tokenState) wait(ctx context.Context) error {
	if left := t.pauseLeft(); left > 0 {
		return &rateLimitedError{left: left}
	}
	if err := t.limiter.Wait(ctx); err != nil {
		return fmt.Errorf("wait for --do-api-qps: %w", err)
	}
	if left := t.pauseLeft(); left > 0 { // a pause began in the meantime
		return &rateLimitedError{left: left}
	}
	return nil
}

// rateLimitedError is the error for a request that was not sent, because the response to an earlier request with the
// same token asked for a pause. It says nothing about the Kluster's cluster.
type rateLimitedError struct{ left time.Duration }

// Error implements error.
func (e *rateLimitedError) Error() string {
	return fmt.Sprintf("the cloud has asked for a pause, which lasts for another %s", e.left)
}

// knownAccount remembers the result of the first successful Identity request: a token never changes its account.
type knownAccount struct {
	cloud.CloudProvider
	token *tokenState
}

// Identity implements cloud.CloudProvider.
func (a *knownAccount) Identity(ctx context.Context) (string, error) {
	a.token.mutex.Lock()
	identity := a.token.identity
	a.token.mutex.Unlock()
	if identity != "" {
		return identity, nil
	}
	identity, err := a.CloudProvider.Identity(ctx)
	if err == nil {
		a.token.mutex.Lock()
		a.token.identity = identity
		a.token.mutex.Unlock()
	}
	return identity, err
}

// cloudRequests counts the requests to the cloud by method and status code.
var cloudRequests = metrics.NewCounterVec(&metrics.CounterOpts{
	Name:           "kluster_cloud_requests_total",
	Help:           "Requests to the cloud's API, by method and status code; code is \"none\" if there was no answer.",
	StabilityLevel: metrics.ALPHA,
}, []string{"method", "code"})

func init() { legacyregistry.MustRegister(cloudRequests) }

// limitedTransport sends the requests with one token no faster than its tokenState allows, and counts them.
type limitedTransport struct {
	next  http.RoundTripper
	token *tokenState
}

// RoundTrip implements http.RoundTripper.
func (t *limitedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := t.token.wait(request.Context()); err != nil {
		return nil, err
	}
	response, err := t.next.RoundTrip(request)
	code := "none"
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
		if response.StatusCode == http.StatusTooManyRequests {
			t.token.pause(digitalocean.RetryAfter(response.Header, time.Now()))
		}
	}
	cloudRequests.WithLabelValues(request.Method, code).Inc()
	return response, err
}

package controller_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/traffic"
)

var _ = Describe("the probes", func() {
	It("report ready only when the caches are filled", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		tap, listing, proceed := holdLists("services")
		options := testOptions(namespace)
		options.HealthProbeBindAddress = freeAddress()
		startManager(tap.Config(cluster.Config), options)
		Eventually(listing).WithContext(ctx).WithTimeout(convergeTimeout).Should(BeClosed())
		probe := func(path string) func() (int, error) {
			return func() (int, error) { return statusOf(ctx, "http://"+options.HealthProbeBindAddress+path) }
		}
		Eventually(probe("/healthz")).WithContext(ctx).WithTimeout(convergeTimeout).Should(Equal(http.StatusOK), "the manager is alive, and must not be restarted")
		Expect(probe("/readyz")()).To(Equal(http.StatusInternalServerError), "see cachesFilled in manager/manager.go")

		close(proceed)
		Eventually(probe("/readyz")).WithContext(ctx).WithTimeout(convergeTimeout).Should(Equal(http.StatusOK))
	}, SpecTimeout(specTimeout))
})

// statusOf returns the HTTP status of the response to a GET request.
func statusOf(ctx context.Context, url string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("make a request: %w", err)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return 0, fmt.Errorf("get %s: %w", url, err)
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}

// freeAddress returns an address that was free a moment ago.
func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

// holdLists returns a Tap that holds back list and watch requests for a resource until proceed is closed. The first of
// these requests closes listing.
func holdLists(resource string) (tap *traffic.Tap, listing, proceed chan struct{}) {
	tap, listing, proceed = traffic.New(), make(chan struct{}), make(chan struct{})
	var once sync.Once
	tap.SetRule(func(request traffic.Request) traffic.Action {
		if request.Resource != resource || request.Verb != "list" && request.Verb != "watch" {
			return traffic.Action{}
		}
		once.Do(func() { close(listing) })
		return traffic.Action{Hold: proceed}
	})
	return tap, listing, proceed
}

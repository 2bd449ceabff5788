package serving_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("a stream of requests to local webhooks", func() {
	It("sees no failures while the process ends", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		local := startLocal(ctx)
		local.waitReady(ctx)
		stream := startStream(ctx, func(ctx context.Context) error {
			return api.Create(ctx, newPassword(namespace, "right"), client.DryRunAll)
		})
		Eventually(stream.requests.Load).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(polling).Should(BeNumerically(">", 100))
		local.stop(ctx)
		stream.end()
		Expect(stream.failures).To(BeEmpty(), "none of the %d requests may fail", stream.requests.Load())
	}, SpecTimeout(specTimeout))
})

type stream struct {
	requests atomic.Int64
	cancel   context.CancelFunc
	users    sync.WaitGroup

	mu       sync.Mutex
	failures []string
}

func startStream(ctx context.Context, ask func(context.Context) error) *stream {
	GinkgoHelper()
	running, cancel := context.WithCancel(ctx)
	started := &stream{cancel: cancel}
	for range 2 {
		started.users.Go(func() {
			for running.Err() == nil {
				started.note(ctx, ask)
			}
		})
	}
	DeferCleanup(started.end)
	return started
}

func (s *stream) note(ctx context.Context, ask func(context.Context) error) {
	at := time.Now()
	err := ask(ctx)
	s.requests.Add(1)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failures = append(s.failures, fmt.Sprintf("%s, after %s: %v", at.Format("15:04:05.000"), time.Since(at), err))
	}
}

// end stops the stream, and returns when the last request has been answered. After that, failures can be read.
func (s *stream) end() {
	s.cancel()
	s.users.Wait()
}

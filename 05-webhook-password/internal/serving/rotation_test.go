package serving_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("a stream of requests to local webhooks", func() {
	It("hears nothing of rotations", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		local := startLocal(ctx, 9*time.Second)
		local.waitReady(ctx)
		Eventually(served).WithContext(ctx).WithArguments(namespace).WithTimeout(patience).WithPolling(polling).Should(Succeed())
		stream := startStream(ctx, func(ctx context.Context) error { return served(ctx, namespace) })

		serials := map[string]bool{}
		Eventually(func(ctx context.Context) (int, error) {
			serial, err := shownSerial(ctx, local.address)
			serials[serial] = true
			return len(serials), err
		}).WithContext(ctx).WithTimeout(patience).WithPolling(polling).Should(BeNumerically(">=", 3), "two rotations")
		stream.end()
		Expect(stream.failures).To(BeEmpty(), "of %d requests", stream.requests.Load())
		Expect(stream.requests.Load()).To(BeNumerically(">", 5), "the stream must have been one")
	}, SpecTimeout(specTimeout))

	It("hears nothing of the end of the process", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		local := startLocal(ctx, day)
		local.waitReady(ctx)
		stream := startStream(ctx, func(ctx context.Context) error {
			return api.Create(ctx, newPassword(namespace, "right"), client.DryRunAll)
		})
		Eventually(stream.requests.Load).WithContext(ctx).WithTimeout(patience).WithPolling(polling).Should(BeNumerically(">", 100))
		local.stop(ctx)
		stream.end()
		Expect(stream.failures).To(BeEmpty(), "of %d requests", stream.requests.Load())
	}, SpecTimeout(specTimeout))
})

// shownSerial is the number of the certificate that a server shows.
func shownSerial(ctx context.Context, address string) (string, error) {
	// Whether the certificate is to be trusted is what the stream finds out.
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

// stream asks the webhooks again and again.
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

// end returns when the last request is answered. failures can be read after it.
func (s *stream) end() {
	s.cancel()
	s.users.Wait()
}

package behaviours

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// mortal ends an operator when a request fails in a way that the operator doesn't survive. With losesLease, it ends the
// operator when the operator updates its Lease.
type mortal struct {
	next  http.RoundTripper
	flaw  mutation
	end   context.CancelFunc
	wrote atomic.Bool
}

// runMortal returns a context and a configuration for an operator with a flaw. The configuration's requests pass
// through a mortal, which ends the operator by cancelling the context.
func runMortal(ctx context.Context, config *rest.Config, mutation mutation) (context.Context, *rest.Config) {
	ctx, end := context.WithCancel(ctx)
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &mortal{next: next, flaw: mutation, end: end} })
	return ctx, config
}

// RoundTrip implements http.RoundTripper.
func (m *mortal) RoundTrip(request *http.Request) (*http.Response, error) {
	writes := request.Method != http.MethodGet
	if writes {
		m.wrote.Store(true)
	}
	if m.flaw == losesLease && request.Method == http.MethodPut && strings.Contains(request.URL.Path, "/leases/") {
		m.end()
	}
	response, err := m.next.RoundTrip(request)
	failed := err != nil || response.StatusCode >= http.StatusInternalServerError
	if err == nil && m.flaw == endsOnRefusal && response.StatusCode == http.StatusForbidden {
		m.end()
	}
	if failed && (m.flaw == endsOnError && writes || m.flaw == endsAtStart && !m.wrote.Load()) {
		m.end()
	}
	if err == nil && m.flaw == endsWithWatch {
		response.Body = &fatalBody{ReadCloser: response.Body, end: m.end}
	}
	return response, err
}

// fatalBody is the body of a response. If the response breaks off in the middle, fatalBody ends the operator.
type fatalBody struct {
	io.ReadCloser
	end context.CancelFunc
}

// Read implements io.Reader.
func (b *fatalBody) Read(buffer []byte) (int, error) {
	n, err := b.ReadCloser.Read(buffer)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		b.end()
	}
	return n, err
}

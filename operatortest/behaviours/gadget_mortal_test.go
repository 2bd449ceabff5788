package behaviours

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// mortal ends an operator when a request fails in a way that the operator doesn't survive.
type mortal struct {
	next  http.RoundTripper
	flaw  mutation
	end   context.CancelFunc
	wrote atomic.Bool
}

// runMortal returns a context and a configuration for an operator with this flaw: a fatal request through the
// configuration ends the context.
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

// fatalBody ends an operator when the body breaks in the middle.
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

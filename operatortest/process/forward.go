package process

import (
	"fmt"
	"net/http"
	"net/http/httputil"

	"k8s.io/client-go/rest"
)

// newForwarder returns a handler that sends requests through the configuration's transport. The handler removes the
// client's token.
func newForwarder(config *rest.Config) (http.Handler, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address: %w", err)
	}
	transport, err := newTransports(config)
	if err != nil {
		return nil, fmt.Errorf("make a transport to the API server: %w", err)
	}
	return &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(server)
			request.Out.Header.Del("Authorization") // the transport has its own
		},
		Transport:     transport,
		FlushInterval: -1, // flush immediately: a watch is a reply that takes minutes
		ErrorLog:      silent,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}, nil
}

// transports are the transports to the API server: upgrade is for requests that change the protocol, such as exec.
type transports struct{ plain, upgrade http.RoundTripper }

func newTransports(config *rest.Config) (transports, error) {
	plain, err := rest.TransportFor(config)
	if err != nil {
		return transports{}, err
	}
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"} // HTTP/2 has no upgrades
	upgrade, err := rest.TransportFor(config)
	return transports{plain: plain, upgrade: upgrade}, err
}

// RoundTrip implements http.RoundTripper.
func (t transports) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get("Upgrade") != "" {
		return t.upgrade.RoundTrip(request)
	}
	return t.plain.RoundTrip(request)
}
